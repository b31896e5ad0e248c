"""The pages of diffs: of a job, and of all work of a tree (ruling M3)."""

from collections.abc import Mapping

from bridge.http.dashboard.frame.page import Action, Asked, Page
from bridge.http.dashboard.parts import diff_view, grid
from bridge.http.dashboard.parts.diff_view import DiffView, ReadDiff
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.model.rows import JobRecord


def _of_job(service: Service, asked: Asked) -> Mapping[str, object]:
    job = jobs.get(service, asked.params["job_id"])
    return _look(service, asked, job, diff_view.of_job(service, job), grid.name_of(job))


def _of_tree(service: Service, asked: Asked) -> Mapping[str, object]:
    tree = jobs.tree(service, asked.params["root"])
    return _look(service, asked, tree.jobs[0], diff_view.of_tree(service, tree), "the whole tree")


def _look(service: Service, asked: Asked, job: JobRecord, diff: ReadDiff, name: str) -> Mapping[str, object]:
    view = DiffView(diff, asked)
    task = jobs.tree(service, job.job_id).task
    return {
        "live": diff.source == "worktree",
        "title": f"Diff of {name} ({job.job_id})",
        "name": name,
        "job": job,
        "task": task,
        "whole": diff.source == "tree",
        "diff": diff,
        "view": view,
        "files": view.files(),
    }


PAGES = (
    Page("/jobs/{job_id}/diff", "diff.html", _of_job, fresh_seconds=5.0),
    Page("/trees/{root}/diff", "diff.html", _of_tree),
)
ACTIONS: tuple[Action, ...] = ()
