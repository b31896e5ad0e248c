"""The list of trees, newest first: one query for a page, however many jobs the trees have."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Engine, Row, Select, Table, and_, func, or_, select, tuple_

from activities.store import schema
from activities.store.job_rows import WorkFilter, job_of
from activities.store.placements import host_of
from activities.store.queries import clock, rows, scalar
from workflows.contract.models import Action
from workflows.model.event_kinds import BranchEventKind
from workflows.model.rows import JobRecord, RoundRecord, TaskRecord
from workflows.model.states import ENDED_JOBS, JobState, TaskState, WaitsFor
from workflows.policy.host_availability import HostSeen
from workflows.policy.tree_states import TreeGroup, TreeState, TreeWork, tree_group, tree_state

jobs, tasks, rounds, deferrals, events = schema.jobs, schema.tasks, schema.rounds, schema.deferrals, schema.events
trees, hosts = schema.trees, schema.hosts


@dataclass(frozen=True)
class ListedTree:
    """A tree in a list."""

    root: JobRecord
    task: TaskRecord
    jobs: int
    ended: int
    running: int
    tokens: int
    cost_usd: float
    price_assumed: bool
    last_words: str
    """The latest summary of a job that has ended; empty if none has a summary."""
    host: HostSeen | None
    waiting: RoundRecord | None
    """Its open round that waits longest."""
    put_off: str
    """The runtime that a deferred job of the tree waits for; empty if no job is deferred."""
    put_off_until: float | None
    queued: str
    """The reason why its oldest queued job waits."""
    preflight_failed: str = ""
    """Why its latest refused set of delegations could not be routed; empty if every set could be."""
    work: TreeWork = TreeWork.NONE
    retried: str = ""
    """The name of the part whose retry opens it again."""


@dataclass(frozen=True, kw_only=True)
class TreeFilter(WorkFilter):
    """The filters of a list of trees."""

    state: TreeState | TreeGroup | None = None
    root: str | None = None
    """The first job of one tree."""


def find(engine: Engine, wanted: TreeFilter, now: float) -> list[ListedTree]:
    """Return the newest trees that match."""
    return [_tree(row) for row in rows(engine, _rows(_page(engine, wanted), now))]


def count(engine: Engine, wanted: TreeFilter) -> int:
    """Return the number of all trees that match."""
    matching = _page(engine, wanted).order_by(None).limit(None).subquery()
    return scalar(engine, select(func.count()).select_from(matching)) or 0


def _page(engine: Engine, wanted: TreeFilter) -> Select[Any]:
    """Select the roots of one page."""
    query = select(tasks.c.root_job_id, tasks.c.opened_at)
    if wanted.root:
        query = query.where(tasks.c.root_job_id == wanted.root)
    if wanted.repo:
        query = query.where(tasks.c.repo == wanted.repo)
    if wanted.state:
        query = query.where(_is_in(wanted.state))
    for condition in wanted.of_job(engine):
        query = query.where(tasks.c.root_job_id.in_(select(jobs.c.root_job_id).where(condition)))
    if wanted.before:
        query = query.where(tuple_(tasks.c.opened_at, tasks.c.root_job_id) < wanted.before)
    return query.order_by(tasks.c.opened_at.desc(), tasks.c.root_job_id.desc()).limit(wanted.limit)


def _is_in(wanted: TreeState | TreeGroup) -> ColumnElement[bool]:
    """Return the condition for trees in this state or group, as `tree_state` and `tree_group` define it."""

    def means(task: TaskState, waits_for: WaitsFor, *, running: bool) -> bool:
        if isinstance(wanted, TreeState):
            return tree_state(task, waits_for, running=running) is wanted
        return task is TaskState.DONE if wanted is TreeGroup.READY else tree_group(task, waits_for) is wanted

    def task(*, running: bool) -> list[tuple[str, str]]:
        pairs = ((task, waits_for) for task in TaskState for waits_for in WaitsFor)
        return [(task.value, waits_for.value) for task, waits_for in pairs if means(task, waits_for, running=running)]

    def within(meant: list[tuple[str, str]]) -> ColumnElement[bool]:
        indexed = tasks.c.state.in_({state for state, _ in meant})
        return and_(indexed, tuple_(tasks.c.state, tasks.c.waits_for).in_(meant))

    moving, resting = task(running=True), task(running=False)
    condition = within(resting)
    if moving != resting:
        runs = select(jobs.c.job_id).where(jobs.c.root_job_id == tasks.c.root_job_id, jobs.c.state == JobState.RUNNING)
        condition = or_(and_(within(moving), runs.exists()), and_(condition, ~runs.exists()))
    if wanted is TreeGroup.READY:
        return and_(condition, _is_ready())
    if wanted is TreeGroup.ENDED:
        return and_(condition, or_(tasks.c.state != TaskState.DONE, ~_is_ready()))
    return condition


def _off_index(column: ColumnElement[str]) -> ColumnElement[str]:
    """Compare a column without its index, which lists the rows of all trees: those of one tree are fewer."""
    return func.lower(column)


WROTE = and_(
    jobs.c.action == Action.IMPLEMENT, _off_index(jobs.c.state) == JobState.SUCCEEDED, jobs.c.head_sha.is_not(None)
)
"""The condition for a job whose commits can be merged."""


def _is_ready() -> ColumnElement[bool]:
    """Return the condition for trees that have ended with work that nobody has merged or dropped since then."""
    root = tasks.c.root_job_id
    wrote = select(jobs.c.job_id).where(jobs.c.root_job_id == root, WROTE)
    settled = select(events.c.event_id).where(events.c.root_job_id == root, _off_index(events.c.kind).in_(SETTLES))
    return and_(wrote.exists(), ~settled.where(events.c.at >= tasks.c.ended_at).exists())


SETTLES = (BranchEventKind.MERGED, BranchEventKind.DROPPED)


def _settled(roots: Select[Any]) -> Select[Any]:
    """Select when work of these trees was merged and dropped last."""
    mine = and_(events.c.root_job_id.in_(roots), _off_index(events.c.kind).in_(SETTLES))
    last = (func.max(events.c.at).filter(events.c.kind == kind).label(kind.name.lower()) for kind in SETTLES)
    return select(events.c.root_job_id, *last).where(mine).group_by(events.c.root_job_id)


def _work(row: Row[Any], task: TaskRecord) -> TreeWork:
    """Return what became of a tree's commits: branches that are dropped after a merge were merged."""
    if task.state is not TaskState.DONE or not row.wrote:
        return TreeWork.NONE
    ended = task.ended_at or 0.0
    if (row.merged or 0.0) >= ended:
        return TreeWork.MERGED
    return TreeWork.DROPPED if (row.dropped or 0.0) >= ended else TreeWork.READY


_COUNTED = ("jobs", "ended", "running", "wrote", "tokens", "cost_usd", "price_assumed")


def _counts(roots: Select[Any]) -> Select[Any]:
    """Count the jobs of the trees, and sum their usage."""
    return (
        select(
            jobs.c.root_job_id,
            func.count().label("jobs"),
            func.count().filter(jobs.c.state.in_(list(ENDED_JOBS))).label("ended"),
            func.count().filter(jobs.c.state == JobState.RUNNING.value).label("running"),
            func.count().filter(WROTE).label("wrote"),
            func.sum(jobs.c.input_tokens + jobs.c.output_tokens).label("tokens"),
            func.sum(jobs.c.cost_usd).label("cost_usd"),
            func.count().filter(jobs.c.price_assumed).label("price_assumed"),
        )
        .where(jobs.c.root_job_id.in_(roots))
        .group_by(jobs.c.root_job_id)
    )


def _rows(page: Select[Any], now: float) -> Select[Any]:
    """Select everything about the trees of a page."""
    root = page.cte("page").c.root_job_id
    counted, settled, host = _counts(select(root)).subquery(), _settled(select(root)).subquery(), _host(root)
    query = select(
        *_labels(jobs, "job"),
        *_labels(tasks, "task"),
        *_labels(rounds, "round"),
        *(counted.c[name] for name in _COUNTED),
        *(settled.c[kind.name.lower()] for kind in SETTLES),
        *(column.scalar_subquery().label(name) for name, column in _of_one_job(root, now).items()),
        *(host.label("host"), hosts.c.seen_at, hosts.c.stopped_at, hosts.c.held, clock().label("host_now")),
    )
    joined = root.table.join(tasks, tasks.c.root_job_id == root).join(jobs, jobs.c.job_id == root)
    joined = joined.join(counted, counted.c.root_job_id == root)
    joined = joined.outerjoin(settled, settled.c.root_job_id == root)
    joined = joined.outerjoin(rounds, rounds.c.round_id == _longest_open(root).scalar_subquery())
    joined = joined.outerjoin(trees, trees.c.root_job_id == root).outerjoin(hosts, hosts.c.name == host)
    return query.select_from(joined).order_by(tasks.c.opened_at.desc(), root.desc())


def _host(root: ColumnElement[str]) -> ColumnElement[str]:
    """Select the host of the tree's open job that waits longest, else the tree's."""
    job = jobs.alias("open_job")
    query = select(host_of(job)).where(job.c.root_job_id == root, job.c.state.not_in(list(ENDED_JOBS)))
    return func.coalesce(query.order_by(job.c.queued_at).limit(1).scalar_subquery(), trees.c.host)


def _of_one_job(root: ColumnElement[str], now: float) -> dict[str, Select[Any]]:
    """Select what a tree shows of one of its jobs: the one that ended last, waits longest, or is put off."""
    job = jobs.alias("of_tree")
    mine = job.c.root_job_id == root
    summary = select(job.c.summary).where(mine, job.c.ended_at.is_not(None), job.c.summary != "")
    queued = select(job.c.reason).where(mine, _off_index(job.c.state) == JobState.QUEUED)
    this_attempt = and_(deferrals.c.job_id == job.c.job_id, deferrals.c.attempt == job.c.attempt)
    put_off = select(deferrals.c.runtime).join(job, this_attempt).order_by(deferrals.c.until).limit(1)
    put_off = put_off.where(mine, _off_index(job.c.state) == JobState.RUNNING, deferrals.c.until > now)
    unroutable = select(job.c.preflight_failed).where(mine, job.c.preflight_failed.is_not(None))
    return {
        "preflight_failed": unroutable.order_by(job.c.queued_at.desc()).limit(1),
        "last_words": summary.order_by(job.c.ended_at.desc()).limit(1),
        "retried": select(job.c.delegation_id).where(job.c.job_id == tasks.c.to_retry),
        "queued": queued.order_by(job.c.queued_at).limit(1),
        "put_off": put_off,
        "put_off_until": put_off.with_only_columns(deferrals.c.until, maintain_column_froms=True),
    }


def _longest_open(root: ColumnElement[str]) -> Select[Any]:
    """Select the tree's open round that waits longest."""
    opened = rounds.alias("open_round")
    query = select(opened.c.round_id).where(opened.c.root_job_id == root, opened.c.closed_at.is_(None))
    return query.order_by(opened.c.opened_at).limit(1)


def _labels(table: Table, name: str) -> list[ColumnElement[Any]]:
    return [column.label(f"{name}.{column.name}") for column in table.c]


def _tree(row: Row[Any]) -> ListedTree:
    values = dict(row._mapping)

    def part(name: str) -> dict[str, Any]:
        return {key.removeprefix(f"{name}."): values[key] for key in values if key.startswith(f"{name}.")}

    waiting, task = part("round"), TaskRecord.model_validate(part("task"))
    return ListedTree(
        root=job_of(part("job")),
        task=task,
        jobs=row.jobs,
        ended=row.ended,
        running=row.running,
        tokens=int(row.tokens),
        cost_usd=row.cost_usd,
        price_assumed=bool(row.price_assumed),
        last_words=row.last_words or "",
        host=HostSeen(row.host, row.seen_at, row.stopped_at, row.held or "", row.host_now) if row.host else None,
        waiting=RoundRecord.model_validate(waiting) if waiting["round_id"] else None,
        put_off=row.put_off or "",
        put_off_until=row.put_off_until,
        queued=row.queued or "",
        preflight_failed=row.preflight_failed or "",
        work=_work(row, task),
        retried=row.retried or "",
    )
