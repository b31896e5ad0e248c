"""The figures of all hosts for monitoring, by a fixed number of statements."""

import json
from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, Select, String, case, cast, func, select

from activities.store import schema, stall_rows
from activities.store.placements import is_unplaced
from activities.store.queries import clock, now, one, rows
from workflows.model.event_kinds import EventKind
from workflows.model.states import JobState
from workflows.policy.host_availability import HostSeen

BOUNDS = (
    EventKind.DELEGATION_WALLTIME_EXCEEDED,
    EventKind.DELEGATION_COST_EXCEEDED,
    EventKind.DELEGATION_COST_USD_EXCEEDED,
    EventKind.DELEGATION_WIDTH_EXCEEDED,
    EventKind.DELEGATION_DEPTH_EXCEEDED,
    EventKind.DELEGATION_BUDGET_EXCEEDED,
    EventKind.VERIFY_REPLAN_EXHAUSTED,
)
"""The kinds of events that report a reached bound."""


@dataclass(frozen=True)
class HostFigures:
    """A host's slots and state."""

    seen: HostSeen
    slots: int
    taken: int
    draining: bool
    lost: bool


@dataclass(frozen=True)
class OpenJobs:
    """The open jobs of one host, runtime, state and required labels."""

    host: str
    """The host where the attempt began, or was placed; else its tree's host. Empty if no host can run it."""
    runtime: str
    state: str
    labels: tuple[str, ...]
    """The labels that the agent and the repository require of a host."""
    count: int
    oldest_at: float
    """Time since which the oldest of these jobs has been queued."""


@dataclass(frozen=True)
class OpenRounds:
    """The open rounds of a kind."""

    kind: str
    count: int
    oldest_at: float


@dataclass(frozen=True)
class Quota:
    """GitHub's quota of the account."""

    limit: int
    remaining: int
    reset_at: float


@dataclass(frozen=True)
class Figures:
    """All figures of the store at `now` on its clock."""

    now: float
    hosts: tuple[HostFigures, ...]
    jobs: tuple[OpenJobs, ...]
    rounds: tuple[OpenRounds, ...]
    trees: dict[str, int]
    bounds: dict[str, int]
    failing: dict[str, int]
    """Notifications whose last delivery failed, by channel."""
    quota: Quota | None
    stalled: dict[str, int] = field(default_factory=dict)
    """The number of stalls by kind."""


@dataclass(frozen=True)
class ModelUsage:
    """The usage of all jobs of a model."""

    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float


def read(engine: Engine) -> Figures:
    """Read the figures."""
    events, tasks, deliveries = schema.events.c, schema.tasks.c, schema.deliveries.c
    with engine.connect() as connection:
        return Figures(
            now(connection),
            _hosts(connection),
            _jobs(connection),
            _rounds(connection),
            _counts(connection, select(tasks.state, func.count()).group_by(tasks.state)),
            _counts(connection, select(events.kind, func.count()).where(events.kind.in_(BOUNDS)).group_by(events.kind)),
            _counts(
                connection,
                select(deliveries.channel, func.count())
                .where(deliveries.delivered_at.is_(None), deliveries.error != "")
                .group_by(deliveries.channel),
            ),
            _quota(connection),
            Counter(stall.kind for stall in stall_rows.every(connection)),
        )


def usage(engine: Engine) -> list[ModelUsage]:
    """Sum up the usage of all jobs by model: one pass over an index of all jobs."""
    jobs, total = schema.jobs.c, func.total if engine.dialect.name == "sqlite" else func.sum
    query = select(jobs.model, *map(total, (jobs.input_tokens, jobs.output_tokens, jobs.cost_usd))).group_by(jobs.model)
    return [
        ModelUsage(model or "", int(read), int(written), float(usd))
        for model, read, written, usd in rows(engine, query)
    ]


def repairs(engine: Engine) -> dict[tuple[str, str], int]:
    """Count the results that agents were asked to correct, by runtime and model (ruling A5)."""
    jobs, events = schema.jobs.c, schema.events.c
    query = select(jobs.runtime, jobs.model, func.count()).group_by(jobs.runtime, jobs.model)
    query = query.select_from(schema.events.join(schema.jobs, jobs.job_id == events.job_id))
    query = query.where(events.kind == EventKind.RESULT_REPAIRED)
    return {(runtime, model or ""): count for runtime, model, count in rows(engine, query)}


def _hosts(connection: Connection) -> tuple[HostFigures, ...]:
    query = select(schema.hosts, clock().label("now")).order_by(schema.hosts.c.name)
    return tuple(
        HostFigures(
            HostSeen(row.name, row.seen_at, row.stopped_at, row.held, row.now),
            row.slots,
            row.taken,
            draining=row.draining_at is not None,
            lost=row.lost_at is not None,
        )
        for row in rows(connection, query)
    )


def _jobs(connection: Connection) -> tuple[OpenJobs, ...]:
    jobs, trees, agents, repos = schema.jobs, schema.trees, schema.agents, schema.repos
    attempts, placements = schema.attempts, schema.placements
    host = case((is_unplaced(), ""), else_=func.coalesce(attempts.c.host, placements.c.host, trees.c.host))
    required = [cast(table.c.require, String) for table in (agents, repos)]  # PostgreSQL can't compare JSON
    keys = (host, jobs.c.runtime, jobs.c.state, *required)
    query = select(*keys, func.count(), func.min(jobs.c.queued_at)).select_from(jobs)
    query = query.join(trees, trees.c.root_job_id == jobs.c.root_job_id)
    for table in (attempts, placements):
        query = query.outerjoin(table, (table.c.job_id == jobs.c.job_id) & (table.c.attempt == jobs.c.attempt))
    query = query.outerjoin(agents, agents.c.name == jobs.c.agent).outerjoin(repos, repos.c.name == jobs.c.repo)
    query = query.where(jobs.c.state.in_((JobState.QUEUED, JobState.RUNNING))).group_by(*keys)
    return tuple(
        OpenJobs(host, runtime, state, _labels(*texts), count, oldest)
        for host, runtime, state, *texts, count, oldest in rows(connection, query)
    )


def _labels(*texts: str | None) -> tuple[str, ...]:
    return tuple(sorted({label for text in texts for label in json.loads(text or "[]")}))


def _rounds(connection: Connection) -> tuple[OpenRounds, ...]:
    rounds = schema.rounds.c
    query = select(rounds.kind, func.count(), func.min(rounds.opened_at)).where(rounds.closed_at.is_(None))
    return tuple(OpenRounds(*row) for row in rows(connection, query.group_by(rounds.kind)))


def _counts(connection: Connection, query: Select[str, int]) -> dict[str, int]:
    return {row[0]: row[1] for row in rows(connection, query)}


def _quota(connection: Connection) -> Quota | None:
    account = schema.github_account.c
    row = one(connection, select(account.quota, account.remaining, account.reset_at))
    return Quota(*row) if row and None not in row else None
