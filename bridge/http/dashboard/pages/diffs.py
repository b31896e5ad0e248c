"""The pages of diffs, of a job and of all work of a tree, and comments on their lines (ruling M3)."""

from collections.abc import Mapping

from bridge.http.dashboard.frame.page import CHANNEL, ActionNote, Done, FormAction, PageRequest, PageView, SubmittedForm
from bridge.http.dashboard.parts import diff_view
from bridge.http.dashboard.parts.diff_view import DiffView, ReadDiff
from bridge.operations.jobs import jobs
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import revising
from bridge.operations.orders.revising import DiffComment, Feedback
from bridge.operations.service import Service
from workflows.model.rows import JobRecord


def _of_job(service: Service, asked: PageRequest) -> Mapping[str, object]:
    job, tree = jobs.get(service, asked.params["job_id"]), jobs.tree(service, asked.params["job_id"])
    return _look(service, asked, job, tree, diff_view.of_job(service, job))


def _of_tree(service: Service, asked: PageRequest) -> Mapping[str, object]:
    tree = jobs.tree(service, asked.params["root"])
    return _look(service, asked, tree.jobs[0], tree, diff_view.of_tree(service, tree))


def _look(service: Service, asked: PageRequest, job: JobRecord, tree: Tree, diff: ReadDiff) -> Mapping[str, object]:
    comments = diff_view.comments_in(diff, asked)
    view = DiffView(diff, asked, comments)
    files = view.files()
    whole = asked.path.startswith("/ui/trees/")
    takes = bool(diff.head) and bool(diff.files) and not revising.refusal(job, tree, whole=whole)
    return {
        "title": f"Diff of {'the whole task' if whole else job.name} ({job.job_id})",
        "live": diff.source == "worktree",
        "name": "the whole task" if whole else job.name,
        "path": asked.path,
        "job": job,
        "task": tree.task,
        "whole": whole,
        "diff": diff,
        "view": view,
        "files": files,
        "takes": takes,
        "receiver": revising.receiver(service, job) if takes else "",
        "comments": comments,
        "opened": diff_view.opened_field(diff, asked),
        "elsewhere": diff_view.elsewhere(comments, files),
        "drafts": bool(comments) or bool(asked.typed.get("text")) or asked.typed.get("open") == "all",
        "stale": asked.typed.get("head", diff.head) != diff.head,
        "earlier": revising.sent_comments(service, job),
    }


async def _comment(service: Service, form: SubmittedForm) -> Done:
    """Send the comments; any other button shows a page of the diff, with all that was typed."""
    whole = "root" in form.asked.params
    job_id = form.asked.params["root" if whole else "job_id"]
    if not form.text("send", ""):
        return Done((), form.text("go", ""), status=200)
    feedback = Feedback(tuple(_comments(form)), form.text("text", ""), form.text("head"), whole)
    made = await revising.revise(service, job_id, feedback, actor=form.actor, channel=CHANNEL)
    if made.again:
        return Done((ActionNote("The leg runs again with your comments.", about=job_id),), f"/ui/jobs/{job_id}")
    text = f"{made.agent} works on your comments. When it has succeeded, merge its job."
    note = ActionNote(text, hint=f"service job merge {made.job_id}", about=made.job_id)
    return Done((note,), f"/ui/trees/{made.job_id}")


def _comments(form: SubmittedForm) -> list[DiffComment]:
    fields = [name for name in form.fields if diff_view.is_comment(name) and form.text(name).strip()]
    lines = [(*diff_view.line_of(name), form.text(name)) for name in fields]
    return [DiffComment(path, line, text, old=old) for path, line, old, text in lines]


PAGES = (
    PageView("/jobs/{job_id}/diff", "diff.html", _of_job, fresh_seconds=5.0),
    PageView("/trees/{root}/diff", "diff.html", _of_tree),
)
ACTIONS = (FormAction("/jobs/{job_id}/diff", _comment), FormAction("/trees/{root}/diff", _comment))
