"""The page of all jobs, newest first: filtered, searched, paged (ruling M4)."""

from collections.abc import Mapping

from activities.store.job_rows import JobFilter
from bridge.http.dashboard.frame.page import FormAction, PageRequest, PageView
from bridge.http.dashboard.parts import lists
from bridge.http.dashboard.parts.lists import Filters
from bridge.operations import paging
from bridge.operations.jobs import jobs
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.model.states import JobState
from workflows.policy.decisions import decision_label

FILTERS = ("state", "repo", "agent", "pr", "issue", "roots", "preflight_failed")


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    def find(filters: Filters) -> Mapping[str, object]:
        records = jobs.find(
            service,
            JobFilter(
                repo=filters["repo"] or None,
                agent=filters["agent"] or None,
                states=jobs.states_by_name(filters["state"] or None),
                roots_only=bool(filters["roots"]),
                preflight_failed=bool(filters["preflight_failed"]),
                limit=lists.PER_PAGE + 1,
                before=paging.place(asked.query.get("cursor")),
                text=filters["q"],
                pull_request=lists.number(filters["pr"], "a pull request"),
                issue=lists.number(filters["issue"], "an issue"),
            ),
        )
        shown, next_cursor = paging.page(records, lists.PER_PAGE + 1, lambda job: (job.queued_at, job.job_id))
        return {
            "jobs": shown,
            "labels": jobs.state_labels(service, shown),
            "titles": jobs.titles(service, shown),
            "ways": lists.ways(asked, filters, next_cursor),
        }

    return {
        "title": "Jobs",
        "states": list(JobState),
        "repos": [repo.name for repo in repos.every(service)],
        "decided": decision_label,
        **lists.searched(asked, FILTERS, find),
    }


PAGES = (PageView("/jobs", "jobs.html", _look),)
ACTIONS: tuple[FormAction, ...] = ()
