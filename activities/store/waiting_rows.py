"""All that waits for a person, across any number of trees: first a list of waits, then the rows of one page.

Each step is one query, whatever the number of trees. Only this module decides what makes a tree wait.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Engine,
    Select,
    String,
    and_,
    case,
    cast,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    union_all,
)

from activities.store import schema, stall_rows
from activities.store.placements import host_of, is_unplaced
from activities.store.queries import clock, rows, scalar, scalars
from activities.store.schema.github import REFUSED
from workflows.github.facts import FactState
from workflows.model.event_kinds import BranchEventKind, EventKind
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.policy.host_availability import UNSEEN_SECONDS

jobs, tasks, rounds, events = schema.jobs, schema.tasks, schema.rounds, schema.events
deliveries, notifications, hosts = schema.deliveries, schema.notifications, schema.hosts
account, facts, threads = schema.github_account, schema.github_facts, schema.github_threads

GOING_ON = (TaskState.OPEN.value, TaskState.AWAITING_HUMAN.value)
OPERATOR = (WaitsFor.RETRY.value, WaitsFor.DISMISS.value)
OPEN_JOBS = (JobState.QUEUED.value, JobState.RUNNING.value)
ORDERS = (
    EventKind.RETRY_REQUESTED,
    EventKind.TREE_TAKEN_UP,
    EventKind.TASK_DISMISSED,
    EventKind.DELEGATION_KILLED,
    BranchEventKind.MERGED,
    BranchEventKind.DROPPED,
)
"""Kinds of events of people's actions on a tree, apart from the ends of rounds."""


ACCOUNT = "account"
"""The key of a wait for the GitHub account. For a pull request or issue the key is OWNER/NAME#NUMBER."""

AWAY_SECONDS = 600.0
"""Delay before people hear that GitHub is away, or asks for no requests."""


class Kind(StrEnum):
    """The reason why a person is needed."""

    PAUSE = "pause"
    BLOCKED = "blocked"
    PREFLIGHT = "preflight"
    UNDELIVERED = "undelivered"
    HOST = "host"
    GITHUB = "github"
    STALLED = "stalled"


@dataclass(frozen=True)
class Wait:
    """One thing that waits: since when, and the key of its row."""

    kind: Kind
    at: float
    key: str


@dataclass(frozen=True)
class TreeUsage:
    """The usage of a tree so far."""

    tokens: int = 0
    cost_usd: float = 0.0
    price_assumed: bool = False


@dataclass(frozen=True)
class Did:
    """An action of a person on a tree, or the end of a tree's pause."""

    at: float
    root_job_id: str
    title: str
    words: str
    said: str = ""
    """The person's own text."""


def waits(engine: Engine) -> list[Wait]:
    """List all that waits, oldest first."""
    return [Wait(Kind(row.kind), row.at, row.key) for row in rows(engine, _waits())]


def _waits() -> Select[Any]:
    beside_trees = (
        _failed_deliveries(),
        _unseen_hosts(),
        _vanished_hosts(),
        _failed_facts(),
        _account_away(),
        _stalls(),
    )
    union = union_all(_pauses(), _blocked_tasks(), _preflight(), *beside_trees).subquery()
    return select(union).order_by(union.c.at, union.c.key)


def usage(engine: Engine, roots: Collection[str]) -> dict[str, TreeUsage]:
    """Return the usage of trees."""
    query = select(
        jobs.c.root_job_id,
        func.sum(jobs.c.input_tokens + jobs.c.output_tokens),
        func.sum(jobs.c.cost_usd),
        func.count().filter(jobs.c.price_assumed),
    )
    query = query.where(jobs.c.root_job_id.in_(roots)).group_by(jobs.c.root_job_id)
    return {root: TreeUsage(int(tokens), cost, bool(assumed)) for root, tokens, cost, assumed in rows(engine, query)}


def host_jobs(engine: Engine, host: str) -> list[str]:
    """Return the jobs that wait for this host, or that have no host for this reason, longest wait first."""
    mine = (_host_or_reason() == host, *_has_waited())
    query = select(jobs.c.job_id).where(*mine)
    return list(scalars(engine, query.order_by(jobs.c.queued_at, jobs.c.job_id)))


def running(engine: Engine, most: int) -> list[tuple[str, list[str]]]:
    """Return the trees that began last and have not ended, each with the agents that work in it now."""
    newest = select(tasks.c.root_job_id).where(tasks.c.state == TaskState.OPEN.value)
    newest = newest.order_by(tasks.c.opened_at.desc()).limit(most)
    agents = select(jobs.c.root_job_id, jobs.c.agent).where(jobs.c.state == JobState.RUNNING.value)
    working: dict[str, list[str]] = {root: [] for root in scalars(engine, newest)}
    for root, agent in rows(engine, agents.where(jobs.c.root_job_id.in_(working)).order_by(jobs.c.job_id)):
        working[root].append(agent)
    return list(working.items())


def lately(engine: Engine, most: int) -> list[Did]:
    """Return the latest actions, newest first: rounds that ended, and orders to trees."""
    return [
        Did(row.at, row.root_job_id, row.title or row.root_job_id, row.words, row.said)
        for row in rows(engine, _lately(most))
    ]


def _lately(most: int) -> Select[Any]:
    ended = select(rounds.c.closed_at.label("at"), rounds.c.root_job_id, rounds.c.closed.label("words"), rounds.c.said)
    parts: list[Select[Any]] = [ended.where(rounds.c.closed_at.is_not(None)).order_by(rounds.c.closed_at.desc())]
    for kind in ORDERS:
        nothing = literal("", String).label("said")
        orders = select(events.c.at, events.c.root_job_id, events.c.message.label("words"), nothing)
        parts.append(orders.where(events.c.kind == kind.value).order_by(events.c.at.desc()))
    actions = union_all(*(select(part.limit(most).subquery()) for part in parts)).subquery()
    query = select(actions, tasks.c.title).outerjoin(tasks, tasks.c.root_job_id == actions.c.root_job_id)
    return query.order_by(actions.c.at.desc()).limit(most)


def nothing_ever_ran(engine: Engine) -> bool:
    """Return whether the store has no tree, ended ones included."""
    return scalar(engine, select(tasks.c.task_id).limit(1)) is None


def _select(kind: Kind, at: ColumnElement[Any], key: ColumnElement[Any]) -> Select[Any]:
    return select(literal_column(f"'{kind}'").label("kind"), at.label("at"), key.label("key"))


def _pauses() -> Select[Any]:
    return _select(Kind.PAUSE, rounds.c.opened_at, rounds.c.round_id).where(rounds.c.closed_at.is_(None))


def _blocked_tasks() -> Select[Any]:
    """Select blocked tasks that wait for an operator; a finalized task has ended although it is blocked (ruling D4)."""
    since = func.coalesce(tasks.c.ended_at, tasks.c.opened_at)
    query = _select(Kind.BLOCKED, since, tasks.c.root_job_id)
    return query.where(tasks.c.waits_for.in_(OPERATOR))


def _preflight() -> Select[Any]:
    """Select preflight flags of open tasks, until a later job of the coordinator's chain delegates (ruling C6).

    A blocked task is listed as a separate wait.
    """
    flagged = select(jobs.c.job_id.label("flag"), jobs.c.root_job_id, jobs.c.job_id, literal_column("0").label("leg"))
    chain = flagged.where(jobs.c.preflight_failed.is_not(None)).cte("chain", recursive=True)
    later = jobs.alias("later")
    follows = (later.c.root_job_id == chain.c.root_job_id) & (later.c.parent_job_id == chain.c.job_id)
    leg = case((later.c.delegation_id.is_(None), 0), else_=1)
    again = select(chain.c.flag, later.c.root_job_id, later.c.job_id, leg).join(later, follows)
    chain = chain.union(again.where(chain.c.leg == 0))
    handed_out = select(chain.c.flag).where(chain.c.leg == 1)
    going_on = jobs.join(tasks, (tasks.c.root_job_id == jobs.c.root_job_id) & tasks.c.state.in_(GOING_ON))
    query = _select(Kind.PREFLIGHT, jobs.c.queued_at, jobs.c.job_id).select_from(going_on)
    return query.where(jobs.c.preflight_failed.is_not(None), jobs.c.job_id.not_in(handed_out))


def _failed_deliveries() -> Select[Any]:
    key = deliveries.c.notification_id + literal(" ", String) + deliveries.c.channel
    query = _select(Kind.UNDELIVERED, notifications.c.at, key).select_from(deliveries.join(notifications))
    return query.where(deliveries.c.delivered_at.is_(None))


def _unseen_hosts() -> Select[Any]:
    """Select hosts whose jobs have waited for longer than a restart takes, if the host starts no runs, or was not seen
    since they began to wait. Also select the reasons why jobs have no host.
    """
    open_ = select(jobs.c.queued_at, _host_or_reason().label("host")).where(*_has_waited()).subquery()
    unseen = or_(hosts.c.seen_at.is_(None), hosts.c.seen_at < clock() - UNSEEN_SECONDS, hosts.c.held != "")
    query = _select(Kind.HOST, func.min(open_.c.queued_at), open_.c.host)
    query = query.select_from(open_.outerjoin(hosts, hosts.c.name == open_.c.host))
    return query.where(open_.c.host.is_not(None), unseen).group_by(open_.c.host)


def _vanished_hosts() -> Select[Any]:
    """Select a fleet's missing hosts without such jobs: hosts that were not seen lately, and did not stop in an orderly
    way (ruling Q5).
    """
    here, late = host_of() == hosts.c.name, clock() - UNSEEN_SECONDS
    last = select(func.max(hosts.alias("other").c.seen_at)).scalar_subquery()
    away = (hosts.c.seen_at < late, last >= late, hosts.c.stopped_at.is_(None))
    waits = exists().where(here, *_has_waited())
    query = _select(Kind.HOST, hosts.c.seen_at, hosts.c.name)
    return query.where(*away, ~waits)


def _has_waited() -> tuple[ColumnElement[bool], ...]:
    """Select open jobs that have waited for as long as the restart of a host takes."""
    return jobs.c.state.in_(OPEN_JOBS), jobs.c.queued_at < clock() - UNSEEN_SECONDS


def _host_or_reason() -> ColumnElement[str]:
    """Select a job's host, or why it has none (ruling Q4)."""
    return case((is_unplaced(), jobs.c.reason), else_=host_of())


def _failed_facts() -> Select[Any]:
    """Select the pull requests and issues with a failed write to GitHub."""
    key = facts.c.github + literal("#", String) + cast(facts.c.number, String)
    query = _select(Kind.GITHUB, func.min(facts.c.at), key).where(facts.c.state == FactState.FAILED.value)
    return query.group_by(facts.c.github, facts.c.number)


def _account_away() -> Select[Any]:
    """Select the GitHub account if GitHub refuses it, or if GitHub has been unreachable for `AWAY_SECONDS` while there
    is work for it.
    """
    written = select(facts.c.fact_id).where(facts.c.state == FactState.OPEN.value).exists()
    read = select(threads.c.root_job_id).where(threads.c.over.is_(False)).exists()
    query = _select(Kind.GITHUB, account.c.failing_since, literal(ACCOUNT, String))
    refused = account.c.failing_since.is_not(None) & account.c.problem.startswith(REFUSED, autoescape=True)
    return query.where(or_(refused, and_(account.c.failing_since < clock() - AWAY_SECONDS, or_(written, read))))


def _stalls() -> Select[Any]:
    stalls = stall_rows.lasting().subquery()
    return _select(Kind.STALLED, stalls.c.since, stalls.c.kind + literal(" ", String) + stalls.c.what)


@dataclass(frozen=True)
class Counts:
    """The counts of the whole store."""

    queued: int
    running: int
    paused: int
    """Trees that wait for a person's answer."""
    blocked: int
    """Tasks that a person must retry or dismiss."""
    stalled: int = 0
    """Stalled jobs, stages and trees."""


def counts(engine: Engine) -> Counts:
    """Count the current states."""
    wanted: tuple[ColumnElement[bool], ...] = (
        jobs.c.state == JobState.QUEUED.value,
        jobs.c.state == JobState.RUNNING.value,
        tasks.c.state == TaskState.AWAITING_HUMAN.value,
        tasks.c.waits_for.in_(OPERATOR),
    )
    counted = [select(func.count()).where(condition).scalar_subquery() for condition in wanted]
    counted.append(select(func.count()).select_from(_stalls().subquery()).scalar_subquery())
    [count] = rows(engine, select(*counted))
    return Counts(*count)
