"""The list of trees, with each tree's state, what it waits for, its latest summary, and its usage."""

import time
from dataclasses import dataclass
from enum import StrEnum

from activities.store import tree_list
from activities.store.tree_list import ListedTree, TreeFilter
from bridge.operations.jobs import hosts
from bridge.operations.paging import check_search
from bridge.operations.service import Service
from workflows.model.errors import UsageError, with_nearest
from workflows.model.rows import JobRecord, RoundRecord
from workflows.model.states import JobState, TaskState
from workflows.policy.tree_states import TreeGroup, TreeState, TreeWork, tree_group, tree_state
from workflows.text.durations import clock


class Awaited(StrEnum):
    """The kinds of things that a tree waits for."""

    NOBODY = ""
    PERSON = "person"
    HOST = "host"
    RUNTIME = "runtime"
    """An agent's program that reached a usage limit, or has no network."""
    PLACE = "place"
    """A free slot on its host."""


@dataclass(frozen=True)
class TreeWait:
    """The person or thing that a tree waits for."""

    who: Awaited = Awaited.NOBODY
    what: str = ""
    """The question to a person, or the reason of the wait."""
    next: str = ""
    """The command after which the tree continues, if there is one."""
    until: float | None = None

    @property
    def words(self) -> str:
        """Return a sentence on who or what the tree waits for; empty if it waits for nothing."""
        return f"you: {self.what}" if self.who is Awaited.PERSON else self.what


@dataclass(frozen=True)
class TreeSummary:
    """A tree in a list."""

    state: TreeState
    title: str
    waits_for: TreeWait
    last_words: str
    """The final summary, or the last summary so far; without one, the reason of the state."""
    jobs: int
    ended_jobs: int
    tokens: int
    cost_usd: float
    price_assumed: bool
    opened_at: float
    ended_at: float | None
    elapsed_seconds: float
    """The elapsed time without the time in which the tree waited for people."""
    preflight_failed: str = ""
    """The reason why the tree's last unroutable set of delegations was refused; empty if all sets could be routed."""
    work: TreeWork = TreeWork.NONE
    """What became of its commits, if it is over and wrote any."""
    group: TreeGroup = TreeGroup.ACTIVE
    to_retry: str = ""
    """The job whose retry opens it again."""
    retried: str = ""
    """The name of that job's part."""

    @property
    def words(self) -> str:
        """Return its state for people, who want to know whether they have the work of a tree that is done."""
        if self.state is not TreeState.DONE or not self.work:
            return self.state.words
        return "ready to merge" if self.work is TreeWork.READY else self.work


@dataclass(frozen=True)
class TreeRow:
    """A tree in a list, with its first job."""

    root: JobRecord
    tree: TreeSummary


STATES = tuple(dict.fromkeys(name.value for name in (*TreeState, *TreeGroup)))
"""The names by which lists of trees are filtered."""


def state_by_name(name: str | None) -> TreeState | TreeGroup | None:
    """Return the state or group with this name, which may be that of a paused task; None for no name."""
    if not name:
        return None
    if name == TaskState.AWAITING_HUMAN:
        return TreeState.WAITING
    if name in STATES:
        return TreeState(name) if name in list(TreeState) else TreeGroup(name)
    way = f"service job list --jobs --state {name}" if name in list(JobState) else ""
    error = UsageError(f"{name!r} is not a state of a task; they are {', '.join(STATES)}", way)
    raise error if way else with_nearest(error, name, STATES)


def find(service: Service, wanted: TreeFilter) -> list[TreeRow]:
    """Return the newest trees that match."""
    check_search(wanted.text)
    now = time.time()
    return [_row(tree, now) for tree in tree_list.find(service.store, wanted, now)]


def count(service: Service, wanted: TreeFilter) -> int:
    """Return the number of all trees that match."""
    return tree_list.count(service.store, wanted)


def cursor_key(row: TreeRow) -> tuple[float, str]:
    """Return the sort key of a row, for the cursor of the page after it."""
    return row.tree.opened_at, row.root.job_id


def _row(tree: ListedTree, now: float) -> TreeRow:
    task = tree.task
    summary = TreeSummary(
        state=tree_state(task.state, task.waits_for, running=tree.running > 0),
        title=task.title,
        waits_for=_waits(tree),
        last_words=tree.last_words or task.reason,
        jobs=tree.jobs,
        ended_jobs=tree.ended,
        tokens=tree.tokens,
        cost_usd=tree.cost_usd,
        price_assumed=tree.price_assumed,
        opened_at=task.opened_at,
        ended_at=task.ended_at,
        elapsed_seconds=task.elapsed_seconds(now),
        preflight_failed=tree.preflight_failed,
        work=tree.work,
        group=TreeGroup.READY if tree.work is TreeWork.READY else tree_group(task.state, task.waits_for),
        to_retry=task.to_retry,
        retried=tree.retried,
    )
    return TreeRow(hosts.with_reason(tree.root, tree.host), summary)


def _waits(tree: ListedTree) -> TreeWait:
    """Return what a tree waits for. If it waits for a person, return that first, because then only the person can
    help.
    """
    task = tree.task
    if tree.waiting:
        return TreeWait(
            who=Awaited.PERSON,
            what=_question(tree.waiting),
            next=f"service resume {tree.waiting.coordinator_id}",
            until=tree.waiting.expires_at,
        )
    if task.cut_short:
        return TreeWait(what=task.reason, next=task.next)
    if task.state.is_closed:
        return TreeWait(who=Awaited.PERSON, what=task.reason, next=task.next) if task.next else TreeWait()
    state = JobState.RUNNING if tree.running else JobState.QUEUED
    if tree.host and hosts.stands_still(tree.host, state, tree.queued):
        return TreeWait(who=Awaited.HOST, what=hosts.reason(tree.host), next=hosts.way_on(tree.host))
    if tree.put_off_until:
        what = f"{tree.put_off} works again at {clock(tree.put_off_until)}"
        return TreeWait(who=Awaited.RUNTIME, what=what, until=tree.put_off_until)
    if tree.queued and not tree.running:
        return TreeWait(who=Awaited.PLACE, what=tree.queued)
    return TreeWait()


def _question(waiting: RoundRecord) -> str:
    """Return the first question of a round, or the first failure, and how many more there are."""
    asked = [question.prompt for question in waiting.questions]
    asked += [f"part {leg.leg} {leg.state}: {leg.reason}" for leg in waiting.failing]
    more = f" (and {len(asked) - 1} more)" if len(asked) > 1 else ""
    return f"{asked[0]}{more}" if asked else "a decision"
