"""Attempts of jobs and stages, by (job, attempt): their rows and deferred tries. Who may run one is in `claim_rows`.

An activity that is called again reads the attempt. The host seals the recorded end with the key of the home that opened
the store; an end without a valid seal counts as missing (N4).
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Engine, Select, Table, exists, or_, select, update

from activities.sealing import attempt_seals, seal_key
from activities.store import schema
from activities.store.database import home_of
from activities.store.queries import Database, clock, insert_new, rows, transaction, write
from workflows.model.jobs import JobOutcome
from workflows.model.spend import Usage
from workflows.model.states import JobState

if TYPE_CHECKING:
    from workflows.pipeline.plan import StageOutcome


@dataclass(frozen=True)
class AttemptRow:
    """One attempt of a job on the host that holds its worktree."""

    job_id: str
    attempt: int
    host: str
    run_dir: str
    started_at: float
    worktree: str | None = None
    branch: str | None = None
    base_sha: str | None = None
    ended_at: float | None = None
    outcome: dict[str, Any] | None = None
    payload: dict[str, Any] | None = None
    diagnostics: dict[str, Any] | None = None
    given: list[str] | None = None
    """The commits that were merged into its worktree before it began; None until the merge has succeeded."""
    seals: str | None = None
    is_forged: bool = False
    """True if the attempt's end was recorded without a valid seal: outcome, payload and diagnostics are left out."""

    @property
    def key(self) -> tuple[str, int]:
        """Return the job and attempt."""
        return self.job_id, self.attempt

    @property
    def known_outcome(self) -> JobOutcome | None:
        """Return the outcome, if it is known; it never changes after that."""
        return JobOutcome.model_validate(self.outcome) if self.outcome else None


def open_or_get(
    connection: Connection, job_id: str, attempt: int, host: str, run_dir: str, started_at: float
) -> AttemptRow:
    """Return the attempt's row, or insert a new one. Part of the claim's transaction."""
    row: dict[str, Any] = {"job_id": job_id, "attempt": attempt, "host": host}
    row |= {"run_dir": run_dir, "started_at": started_at}
    if insert_new(connection, schema.attempts, row):
        return AttemptRow(**row)
    stored = get(connection, job_id, attempt)
    assert stored is not None
    return stored


def get(store: Database, job_id: str, attempt: int) -> AttemptRow | None:
    query = select(schema.attempts).where(is_of(schema.attempts, Offered(job_id, attempt)))
    return next(iter(_read(store, query)), None)


def _read(store: Database, query: Select[Any]) -> list[AttemptRow]:
    """Return attempts, each without its recorded end unless all of it is sealed."""
    return [_attempt_row(home_of(store), dict(row._mapping)) for row in rows(store, query)]


def _attempt_row(home: Path, values: dict[str, Any]) -> AttemptRow:
    """Return an attempt; without its recorded end unless that is sealed with a key of the home."""
    parts = {part: values[part] for part in attempt_seals.PARTS}
    if any(value is not None for value in parts.values()):
        keys, of = seal_key.every(home), (values["seals"], values["job_id"], values["attempt"])
        if not all(attempt_seals.holds(keys, *of, part, value) for part, value in parts.items()):
            return AttemptRow(**values | dict.fromkeys(parts), is_forged=True)
    return AttemptRow(**values)


def of_job(engine: Engine, job_id: str) -> list[AttemptRow]:
    """Return every attempt of a job, oldest first."""
    query = select(schema.attempts).where(schema.attempts.c.job_id == job_id).order_by(schema.attempts.c.attempt)
    return _read(engine, query)


def of_tree(engine: Engine, root_job_id: str) -> list[AttemptRow]:
    """Return every attempt of every job of a tree."""
    query = select(schema.attempts).join(schema.jobs, schema.jobs.c.job_id == schema.attempts.c.job_id)
    query = query.where(schema.jobs.c.root_job_id == root_job_id)
    return _read(engine, query)


def dependencies(engine: Engine, job_ids: Collection[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Map each dependent leg, by the job that delegated it and its id, to the ids of the legs it depends on."""
    query = select(schema.attempts.c.job_id, schema.attempts.c.payload[("service_result", "delegations")].label("legs"))
    query = query.where(schema.attempts.c.job_id.in_(job_ids)).order_by(schema.attempts.c.attempt)
    return {
        (row.job_id, leg["id"]): tuple(leg.get("deps") or ()) for row in rows(engine, query) for leg in row.legs or ()
    }


@dataclass(frozen=True)
class Given:
    """The commits that a job's last attempt was given, and the delegations it returned."""

    base_sha: str | None
    given: tuple[str, ...] | None
    delegations: tuple[dict[str, Any], ...]


def given_in(engine: Engine, root_job_id: str) -> dict[str, Given]:
    """Return the given commits and delegations of each job of a tree that has run."""
    run, job = schema.attempts.c, schema.jobs.c
    legs = run.payload[("service_result", "delegations")].label("legs")
    same = (run.job_id == job.job_id) & (run.attempt == job.attempt)
    query = select(run.job_id, run.base_sha, run.given, legs).join(schema.jobs, same)
    return {
        row.job_id: Given(row.base_sha, None if row.given is None else tuple(row.given), tuple(row.legs or ()))
        for row in rows(engine, query.where(job.root_job_id == root_job_id))
    }


def all_open(engine: Engine) -> list[tuple[str, int]]:
    """Return job and attempt of every run without an outcome: a workflow will attach to them again."""
    query = select(schema.attempts.c.job_id, schema.attempts.c.attempt).where(schema.attempts.c.ended_at.is_(None))
    return [(row.job_id, row.attempt) for row in rows(engine, query)]


def abandoned_on(engine: Engine, host: str, seconds: float) -> list[AttemptRow]:
    """Return a host's attempts without an outcome whose job ended, in this or a later attempt, at least `seconds`
    ago.
    """
    run, job = schema.attempts.c, schema.jobs.c
    query = select(schema.attempts).join(schema.jobs, job.job_id == run.job_id)
    query = query.where(
        run.ended_at.is_(None), run.host == host, job.ended_at < clock() - seconds, job.attempt >= run.attempt
    )
    return _read(engine, query)


def unrecorded_on(engine: Engine, host: str) -> list[AttemptRow]:
    """Return a host's attempts without an outcome that are not deferred, and those with an outcome whose job still runs
    in the rows.
    """
    run, job, later = schema.attempts.c, schema.jobs.c, schema.deferrals.c
    mine = (later.job_id == run.job_id) & (later.attempt == run.attempt)
    put_off = exists().where(mine, later.until > clock())
    runs_on = (job.state == JobState.RUNNING.value) & (job.attempt == run.attempt)
    query = select(schema.attempts).outerjoin(schema.jobs, job.job_id == run.job_id)
    query = query.where(run.host == host, or_(run.ended_at.is_(None) & ~put_off, run.ended_at.is_not(None) & runs_on))
    return _read(engine, query)


def record_worktree(
    engine: Engine, row: AttemptRow, *, worktree: str, branch: str | None, base_sha: str, alone: bool = False
) -> None:
    """Record the run's worktree before it starts: no run is ever outside a recorded worktree.

    A run that is `alone` is given no commits besides its base.
    """
    given: dict[str, Any] = {"given": []} if alone else {}
    _update(engine, row, worktree=worktree, branch=branch, base_sha=base_sha, **given)


def give(engine: Engine, row: AttemptRow, commits: Collection[str]) -> None:
    """Record, before the run starts, the commits given to it besides its base: a reviewer's verdict is about those."""
    _update(engine, row, given=list(commits))


def close(
    store: Database,
    row: AttemptRow,
    outcome: "JobOutcome | StageOutcome",
    payload: dict[str, Any],
    diagnostics: dict[str, Any],
) -> bool:
    """Record how the run of a job or a stage ended. Return False if that is recorded already: the first record is
    final, unless it is forged.
    """
    table, key = schema.attempts, Offered(*row.key)
    parts = {"outcome": outcome.model_dump(mode="json"), "payload": payload, "diagnostics": diagnostics}
    seals = attempt_seals.seal_parts(seal_key.ensure(home_of(store)), *row.key, parts)
    end = update(table).values(**parts, seals=seals, ended_at=clock())
    with transaction(store) as connection:
        if write(connection, end.where(is_of(table, key), table.c.ended_at.is_(None))):
            return True
        stored = get(connection, *row.key)
        if stored is None or stored.outcome is not None:
            return False
        return write(connection, end.where(is_of(table, key), table.c.seals.is_not_distinct_from(stored.seals))) == 1


def seal_again(engine: Engine, former: Sequence[bytes]) -> None:
    """Seal the ends sealed with these former keys again, with the home's key: the former keys are about to be
    deleted.
    """
    table = schema.attempts
    columns = (table.c.job_id, table.c.attempt, table.c.seals, *(table.c[part] for part in attempt_seals.PARTS))
    with engine.begin() as connection:
        key = seal_key.ensure(home_of(connection))
        for row in rows(connection, select(*columns).where(table.c.seals.is_not(None))):
            parts = {part: row._mapping[part] for part in attempt_seals.PARTS}
            of = (row.seals, row.job_id, row.attempt)
            if all(attempt_seals.holds(former, *of, part, value) for part, value in parts.items()):
                seals = attempt_seals.seal_parts(key, row.job_id, row.attempt, parts)
                mine = is_of(table, Offered(row.job_id, row.attempt))
                write(connection, update(table).where(mine).values(seals=seals))


def _update(engine: Engine, row: AttemptRow, **values: Any) -> None:
    table = schema.attempts
    still_open = is_of(table, Offered(*row.key)) & table.c.ended_at.is_(None)
    write(engine, update(table).where(still_open).values(**values))


@dataclass(frozen=True)
class Offered:
    """One offer of one attempt of a job or a pipeline's stage."""

    job_id: str
    attempt: int
    offer: int = 1

    @property
    def key(self) -> tuple[str, int]:
        """Return the job and attempt."""
        return self.job_id, self.attempt


def is_of(table: Table, offered: Offered) -> ColumnElement[bool]:
    """Select the rows of a table that are of the attempt."""
    return (table.c.job_id == offered.job_id) & (table.c.attempt == offered.attempt)


@dataclass(frozen=True)
class Deferral:
    """A try that met a rate limit or had no network, and the time of the next try."""

    job_id: str
    attempt: int
    number: int
    runtime: str
    kind: str
    message: str
    at: float
    until: float
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int | None = None

    @property
    def usage(self) -> Usage:
        """Return what the deferred try used."""
        return Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens, requests=self.requests)


def defer(engine: Engine, deferral: Deferral) -> None:
    """Record a deferral; the first record of its number is final."""
    insert_new(engine, schema.deferrals, asdict(deferral))


def deferrals_of_run(engine: Engine, job_id: str, attempt: int) -> tuple[Deferral, ...]:
    """Return every deferral of an attempt, oldest first."""
    return _deferrals(engine, is_of(schema.deferrals, Offered(job_id, attempt)))


def deferrals_of_job(engine: Engine, job_id: str) -> tuple[Deferral, ...]:
    """Return every deferral of a job; for a root, of its whole tree."""
    column = schema.deferrals.c.job_id
    return _deferrals(engine, or_(column == job_id, column.startswith(f"{job_id}.", autoescape=True)))


def _deferrals(engine: Engine, which: ColumnElement[bool]) -> tuple[Deferral, ...]:
    query = select(schema.deferrals).where(which).order_by(schema.deferrals.c.at, schema.deferrals.c.number)
    return tuple(Deferral(**row._mapping) for row in rows(engine, query))
