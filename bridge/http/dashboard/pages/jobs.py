"""The page of all jobs, newest first: filtered, searched, paged (ruling M4)."""

from collections.abc import Mapping

from activities.store.job_rows import JobFilter
from bridge.http.dashboard.frame.page import Action, Asked, Page
from bridge.http.dashboard.parts import lists
from bridge.operations import paging
from bridge.operations.jobs import jobs
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.model.states import JobState
from workflows.policy.decisions import decision_label

FIELDS = ("q", "repo", "agent", "state", "pr", "issue", "roots", "preflight_failed")


def _look(service: Service, asked: Asked) -> Mapping[str, object]:
    said = lists.wanted(asked, *FIELDS)
    found = jobs.find(
        service,
        JobFilter(
            repo=said["repo"] or None,
            agent=said["agent"] or None,
            states=jobs.states_by_name(said["state"] or None),
            roots_only=bool(said["roots"]),
            preflight_failed=bool(said["preflight_failed"]),
            limit=lists.PER_PAGE + 1,
            before=paging.place(asked.query.get("cursor")),
            text=said["q"],
            pull_request=lists.number(said["pr"], "a pull request"),
            issue=lists.number(said["issue"], "an issue"),
        ),
    )
    shown, next_cursor = paging.page(found, lists.PER_PAGE + 1, lambda job: (job.queued_at, job.job_id))
    return {
        "title": "Jobs",
        "said": said,
        "narrowed": any(said.values()),
        "jobs": shown,
        "labels": jobs.state_labels(service, shown),
        "titles": jobs.titles(service, shown),
        "states": list(JobState),
        "repos": [repo.name for repo in repos.every(service)],
        "decided": decision_label,
        "ways": lists.ways(asked, said, next_cursor),
    }


PAGES = (Page("/jobs", "jobs.html", _look),)
ACTIONS: tuple[Action, ...] = ()
