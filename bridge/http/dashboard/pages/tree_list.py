"""The page of all tasks: in groups by what they need, or those of one state; searched, paged."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from activities.store.tree_list import TreeFilter
from bridge.http.dashboard.frame.page import FormAction, PageRequest, PageView
from bridge.http.dashboard.parts import lists
from bridge.http.dashboard.parts.lists import Filters
from bridge.operations import paging
from bridge.operations.jobs import tree_list
from bridge.operations.jobs.tree_list import TreeRow
from bridge.operations.registry import repos
from bridge.operations.service import Service
from workflows.policy.tree_states import TreeGroup, TreeState

FILTERS = ("state", "repo", "agent", "pr", "issue")
FIRST = 20
"""The number of tasks of each group, before a person asks for one group alone."""


@dataclass(frozen=True)
class TaskGroup:
    """Tasks under one heading, and the address of the older ones; empty if there are none."""

    name: str
    heading: str
    rows: list[TreeRow]
    older: str
    all: str
    """The number of its tasks. Of ended ones more are not counted than are shown: there may be very many."""


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    def find(filters: Filters) -> Mapping[str, object]:
        wanted = TreeFilter(
            repo=filters["repo"] or None,
            agent=filters["agent"] or None,
            state=tree_list.state_by_name(filters["state"]),
            text=filters["q"],
            pull_request=lists.number(filters["pr"], "a pull request"),
            issue=lists.number(filters["issue"], "an issue"),
            before=paging.place(asked.query.get("cursor")),
        )
        states = (wanted.state,) if wanted.state else tuple(TreeGroup)
        groups = [_group(service, asked, filters, replace(wanted, state=state)) for state in states]
        newest = lists.ways(asked, filters, None)["newest"]
        return {"groups": [group for group in groups if group.rows], "newest": newest}

    known = repos.every(service)
    return {
        "title": "Tasks",
        "states": {state.value: state.words for state in (*TreeGroup, *TreeState)},
        "repos": [repo.name for repo in known],
        "mirrors": {repo.name: repo.default_branch for repo in known if repo.is_mirror},
        **lists.searched(asked, FILTERS, find),
    }


def _group(service: Service, asked: PageRequest, filters: Filters, wanted: TreeFilter) -> TaskGroup:
    assert wanted.state is not None
    limit = (lists.PER_PAGE if filters["state"] else FIRST) + 1
    rows, cursor = paging.page(tree_list.find(service, replace(wanted, limit=limit)), limit, tree_list.cursor_key)
    older = lists.ways(asked, {**filters, "state": wanted.state.value}, cursor)["older"]
    counts = older and wanted.state in (TreeGroup.NEEDS_YOU, TreeGroup.ACTIVE)
    number = f"{tree_list.count(service, wanted):,}" if counts else f"{len(rows)}{'+' if older else ''}"
    return TaskGroup(wanted.state.value, wanted.state.words[:1].upper() + wanted.state.words[1:], rows, older, number)


PAGES = (PageView("/trees", "tree_list.html", _look),)
ACTIONS: tuple[FormAction, ...] = ()
