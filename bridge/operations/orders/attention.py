"""Everything that waits for a person, by page or all at once, fast even for hundreds of trees (rulings B3, M1).

Conflicts come from the store: no repository is read.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from activities.host import checkouts
from activities.store import branch_rows, job_rows, outbox, round_rows, stall_rows, waiting_rows
from activities.store.branch_rows import Conflict
from activities.store.registry import host_rows, repo_rows
from activities.store.waiting_rows import Did, Kind, TreeUsage, Wait
from bridge.operations.branches import branches
from bridge.operations.github.account import Trouble, troubles
from bridge.operations.jobs import hosts
from bridge.operations.jobs.hosts import AbsentHost
from bridge.operations.jobs.views import JobSummary, RowView, Task
from bridge.operations.service import Service
from workflows.model.ids import root_of
from workflows.model.rows import JobRecord, RoundRecord, TaskRecord
from workflows.model.states import FAILING
from workflows.policy.host_availability import HostSeen
from workflows.policy.placement import NO_HOST
from workflows.policy.stalls import WAYS, Stall

MOST_LISTED = 100
"""How many blocked tasks are listed; the newest are kept."""


class WaitingRound(RowView, RoundRecord):
    """A round that waits for a person, the title of its task, and what its tree has spent."""

    title: str
    tokens: int
    cost_usd: float
    price_assumed: bool


@dataclass(frozen=True)
class Undelivered:
    """A notification that could not be delivered by its channel."""

    notification_id: str
    job_id: str
    channel: str
    attempts: int
    error: str
    message: str
    since: float


@dataclass(frozen=True)
class Stalled(Stall):
    """A stall: a sentence on what is stuck, and the commands that help."""

    message: str = ""
    next: tuple[str, ...] = WAYS


@dataclass(frozen=True)
class AttentionReport:
    """The content of `service attention`, each kind with the oldest first."""

    waiting: tuple[WaitingRound, ...]
    preflight_failed: tuple[JobSummary, ...]
    undelivered: tuple[Undelivered, ...]
    conflicts: tuple[branches.WayOut, ...]
    hosts: tuple[AbsentHost, ...]
    """Hosts that jobs wait for, and whose workers have sent no heartbeat for a minute."""
    github: tuple[Trouble, ...]
    """Failed writes to GitHub, and an account that is refused."""
    stalled: tuple[Stalled, ...]
    """Stalls, each with the commands that help."""
    blocked: tuple[Task, ...]
    """Tasks that are blocked for a reason other than a conflict."""


LATELY, RUNNING = 8, 20
AT_ONCE = 1000
"""The number of keys in one query; databases limit it."""


@dataclass(frozen=True)
class Knot:
    """A conflict between legs, and the commands that solve it."""

    conflict: Conflict
    legs: tuple[JobRecord, ...]
    """The legs with unmerged branches; the last one conflicts with the others."""
    by_hand: tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """Something that waits for a person. Its kind decides which fields are set."""

    place: Wait
    root_job_id: str = ""
    round: RoundRecord | None = None
    failing: tuple[JobRecord, ...] = ()
    retry: str = ""
    """The job whose retry re-opens the blocked task."""
    knots: tuple[Knot, ...] = ()
    job: JobRecord | None = None
    undelivered: tuple[outbox.Notification, outbox.Delivery] | None = None
    host: AbsentHost | None = None
    github: Trouble | None = None
    stall: Stall | None = None


@dataclass(frozen=True)
class Running:
    """A tree that is running."""

    task: TaskRecord
    agents: tuple[str, ...]
    spent: TreeUsage
    seconds: float


@dataclass(frozen=True)
class WaitingPage:
    """A page of waiting items, the oldest first, and their number in all."""

    total: int
    first: int
    items: tuple[Item, ...]
    tasks: Mapping[str, TaskRecord]
    """The tasks of the items, by root job id."""
    spent: Mapping[str, TreeUsage]
    newest: str = ""
    """The newest item, in a few words."""


def page(service: Service, first: int, most: int) -> WaitingPage:
    """Return a page of items, from a position on."""
    places = waiting_rows.waits(service.store)
    first = min(first, max(0, len(places) - 1) // most * most)
    items = _items(service, places[first : first + most])
    newest = places[-1:] if items and places[-1] != items[-1].place else []
    last = [*items, *_items(service, newest)][-1:]
    roots = {item.root_job_id for item in (*items, *last) if item.root_job_id}
    tasks, spent = job_rows.tasks_of(service.store, roots), waiting_rows.usage(service.store, roots)
    words = "".join(_title(item, tasks) for item in last)
    return WaitingPage(len(places), first, tuple(items), tasks, spent, words)


def of_tree(service: Service, root: str) -> WaitingPage:
    """Return all items of one tree."""
    items = _items(service, [place for place in waiting_rows.waits(service.store) if root in place.key])
    return WaitingPage(len(items), 0, tuple(items), job_rows.tasks_of(service.store, [root]), {})


def every(service: Service) -> WaitingPage:
    """Return all items."""
    places = waiting_rows.waits(service.store)
    items, tasks, spent = list[Item](), dict[str, TaskRecord](), dict[str, TreeUsage]()
    for first in range(0, len(places), AT_ONCE):
        page_items = _items(service, places[first : first + AT_ONCE])
        roots = {item.root_job_id for item in page_items if item.root_job_id}
        tasks |= job_rows.tasks_of(service.store, roots)
        spent |= waiting_rows.usage(service.store, roots)
        items += page_items
    return WaitingPage(len(items), 0, tuple(items), tasks, spent)


def number(service: Service) -> int:
    """Return the number of items."""
    return len(waiting_rows.waits(service.store))


def lately(service: Service) -> list[Did]:
    """Return the last actions on trees, newest first: actor, time, and the channel if it is recorded."""
    return waiting_rows.lately(service.store, LATELY)


def running(service: Service) -> list[Running]:
    """Return the running trees, newest first."""
    rows, now = waiting_rows.running(service.store, RUNNING), time.time()
    roots = [root for root, _ in rows]
    tasks, spent = job_rows.tasks_of(service.store, roots), waiting_rows.usage(service.store, roots)
    return [
        Running(tasks[root], tuple(agents), spent.get(root, TreeUsage()), tasks[root].elapsed_seconds(now))
        for root, agents in rows
        if root in tasks
    ]


def nothing_ever_ran(service: Service) -> bool:
    """Return whether no tree was ever started."""
    return waiting_rows.nothing_ever_ran(service.store)


def titles(service: Service, job_ids: Sequence[str]) -> dict[str, str]:
    """Return the titles of jobs' tasks."""
    tasks = job_rows.tasks_of(service.store, {root_of(each) or "" for each in job_ids})
    return {each: task.title for each in job_ids if (task := tasks.get(root_of(each) or ""))}


def _title(item: Item, tasks: Mapping[str, TaskRecord]) -> str:
    if item.host:
        return item.host.says
    if item.github:
        return f"GitHub: {item.github.says}"
    if item.stall:
        return f"{item.stall.what}: {item.stall.says}"
    task = tasks.get(item.root_job_id)
    return f"{task.repo}: {task.title}" if task else item.root_job_id


Places = Mapping[str, Wait]


def _items(service: Service, places: Sequence[Wait]) -> list[Item]:
    """Return the items of these waits, in order. Leave out what has stopped waiting."""
    readers: dict[Kind, Callable[[Service, Places], list[Item]]] = {
        Kind.PAUSE: _pauses,
        Kind.BLOCKED: _blocked_tasks,
        Kind.PREFLIGHT: _preflight,
        Kind.UNDELIVERED: _failed_notifications,
        Kind.HOST: _hosts,
        Kind.GITHUB: _github,
        Kind.STALLED: _stalls,
    }
    made: dict[Wait, Item] = {}
    for kind, read in readers.items():
        if mine := {place.key: place for place in places if place.kind is kind}:
            made |= {item.place: item for item in read(service, mine)}
    return [made[place] for place in places if place in made]


def _pauses(service: Service, places: Places) -> list[Item]:
    rounds = round_rows.some(service.store, places)
    return [Item(places[each.round_id], each.root_job_id, round=each) for each in rounds]


def _blocked_tasks(service: Service, places: Places) -> list[Item]:
    tasks, jobs = job_rows.tasks_of(service.store, places), job_rows.blockers(service.store, places)
    knots = _knots(service, tasks, jobs)
    return [
        Item(
            places[root],
            root,
            failing=tuple(job for job in jobs if job.root_job_id == root and job.state in FAILING),
            retry=task.to_retry,
            knots=tuple(knot for knot in knots if knot.conflict.root_job_id == root),
        )
        for root, task in tasks.items()
    ]


def _knots(service: Service, tasks: Mapping[str, TaskRecord], jobs: Sequence[JobRecord]) -> list[Knot]:
    conflicts = branch_rows.conflicts(service.store, list(tasks))
    roots = {each.root_job_id for each in conflicts}
    over = {event.branch for _, _, event in branch_rows.events_of(service.store, *roots)} if conflicts else set()
    known = (repo_rows.get(service.store, tasks[root].repo) for root in roots)
    paths = {repo.name: checkouts.seen_here(service, repo) for repo in known if repo}
    made = []
    for conflict in conflicts:
        mine = {job.branch: job for job in jobs if job.root_job_id == conflict.root_job_id and job.branch}
        legs = tuple(mine[name] for name in (*conflict.against, conflict.branch) if name in mine and name not in over)
        repo, name = paths.get(tasks[conflict.root_job_id].repo), f"service/{tasks[conflict.root_job_id].task_id}"
        by_hand = branches.by_hand(repo.path, name, legs[-1].branch or "") if repo and legs else ()
        made.append(Knot(conflict, legs, by_hand))
    return made


def _preflight(service: Service, places: Places) -> list[Item]:
    jobs = job_rows.some(service.store, places)
    return [Item(places[job.job_id], job.root_job_id, job=job) for job in jobs]


def _failed_notifications(service: Service, places: Places) -> list[Item]:
    failures = outbox.failing(service.store, {key.rpartition(" ")[0] for key in places})
    named = {f"{how.notification_id} {how.channel}": (note, how) for note, how in failures}
    return [
        Item(place, named[key][0].root_job_id, undelivered=named[key]) for key, place in places.items() if key in named
    ]


def _hosts(service: Service, places: Places) -> list[Item]:
    seen = {host.name: host.seen for host in host_rows.every(service.store)}
    made = []
    for name, place in places.items():
        host = seen.get(name, HostSeen(name))
        jobs = tuple(waiting_rows.host_jobs(service.store, name))
        if name.startswith(NO_HOST):
            absent = AbsentHost("a host that can run them", name, "service host list", jobs, unplaced=True)
        else:
            absent = AbsentHost(name, hosts.reason(host), hosts.way_on(host), jobs)
        made.append(Item(place, host=absent))
    return made


def _stalls(service: Service, places: Places) -> list[Item]:
    stalls = {f"{stall.kind} {stall.what}": stall for stall in stall_rows.every(service.store)}
    return [
        Item(place, root_of(stalls[key].what) or "", stall=stalls[key])
        for key, place in places.items()
        if key in stalls
    ]


def _github(service: Service, places: Places) -> list[Item]:
    by_key = troubles(service, places)
    return [Item(places[key], trouble.root_job_id, github=trouble) for key, trouble in by_key.items()]


def find(service: Service) -> AttentionReport:
    """Return everything that waits for a person, sorted by the reason."""
    waiting = every(service)
    tasks, used = waiting.tasks, waiting.spent
    blocked = [tasks[item.root_job_id] for item in waiting.items if item.place.kind is Kind.BLOCKED]
    conflicts = tuple(branches.ways_out(service, [task.root_job_id for task in blocked]))
    shown = {way.root_job_id for way in conflicts}
    return AttentionReport(
        waiting=tuple(
            _waiting_round(item.round, tasks.get(item.root_job_id), used.get(item.root_job_id, TreeUsage()))
            for item in waiting.items
            if item.round
        ),
        preflight_failed=tuple(JobSummary.of(item.job) for item in waiting.items if item.job),
        undelivered=tuple(_undelivered_note(*item.undelivered) for item in waiting.items if item.undelivered),
        conflicts=conflicts,
        hosts=tuple(item.host for item in waiting.items if item.host),
        github=tuple(item.github for item in waiting.items if item.github),
        stalled=tuple(Stalled(**vars(item.stall), message=item.stall.says) for item in waiting.items if item.stall),
        blocked=tuple(Task.of(task) for task in blocked[-MOST_LISTED:] if task.root_job_id not in shown),
    )


def _waiting_round(record: RoundRecord, task: TaskRecord | None, spent: TreeUsage) -> WaitingRound:
    return WaitingRound(**dict(record), title=task.title if task else "", **asdict(spent))


def _undelivered_note(notification: outbox.Notification, how: outbox.Delivery) -> Undelivered:
    return Undelivered(
        notification.notification_id,
        notification.job_id,
        how.channel,
        how.attempts,
        how.error,
        notification.message,
        since=notification.at,
    )
