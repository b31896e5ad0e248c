"""The page of all trees, newest first: filtered, searched, paged."""

from collections.abc import Mapping

from activities.store.tree_list import TreeFilter
from bridge.http.dashboard.frame.page import FormAction, PageRequest, PageView
from bridge.http.dashboard.parts import lists
from bridge.operations import paging
from bridge.operations.jobs import tree_list
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.policy.tree_states import TreeState

FIELDS = ("q", "repo", "agent", "state", "pr", "issue")


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    filters = lists.filters_of(asked, *FIELDS)
    wanted = TreeFilter(
        repo=filters["repo"] or None,
        agent=filters["agent"] or None,
        state=tree_list.state_by_name(filters["state"]),
        text=filters["q"],
        pull_request=lists.number(filters["pr"], "a pull request"),
        issue=lists.number(filters["issue"], "an issue"),
        limit=lists.PER_PAGE + 1,
        before=paging.place(asked.query.get("cursor")),
    )
    shown, next_cursor = paging.page(tree_list.find(service, wanted), wanted.limit, tree_list.cursor_key)
    return {
        "title": "Trees",
        "filters": filters,
        "narrowed": any(filters.values()),
        "trees": shown,
        "states": {state.value: state.words for state in TreeState},
        "repos": [repo.name for repo in repos.every(service)],
        "ways": lists.ways(asked, filters, next_cursor),
    }


PAGES = (PageView("/trees", "tree_list.html", _look),)
ACTIONS: tuple[FormAction, ...] = ()
