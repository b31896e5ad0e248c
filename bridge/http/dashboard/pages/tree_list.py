"""The page of all trees, newest first: filtered, searched, paged."""

from collections.abc import Mapping

from activities.store.tree_list import TreeFilter
from bridge.http.dashboard.frame.page import Action, Asked, Page
from bridge.http.dashboard.parts import lists
from bridge.operations import paging
from bridge.operations.jobs import tree_list
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.policy.tree_states import TreeState

FIELDS = ("q", "repo", "agent", "state", "pr", "issue")


def _look(service: Service, asked: Asked) -> Mapping[str, object]:
    said = lists.wanted(asked, *FIELDS)
    wanted = TreeFilter(
        repo=said["repo"] or None,
        agent=said["agent"] or None,
        state=tree_list.state_by_name(said["state"]),
        text=said["q"],
        pull_request=lists.number(said["pr"], "a pull request"),
        issue=lists.number(said["issue"], "an issue"),
        limit=lists.PER_PAGE + 1,
        before=paging.place(asked.query.get("cursor")),
    )
    shown, next_cursor = paging.page(tree_list.find(service, wanted), wanted.limit, tree_list.cursor_key)
    return {
        "title": "Trees",
        "said": said,
        "narrowed": any(said.values()),
        "trees": shown,
        "states": {state.value: state.words for state in TreeState},
        "repos": [repo.name for repo in repos.every(service)],
        "ways": lists.ways(asked, said, next_cursor),
    }


PAGES = (Page("/trees", "tree_list.html", _look),)
ACTIONS: tuple[Action, ...] = ()
