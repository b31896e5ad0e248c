"""The store takes all text that the contract allows, on each database, and refuses other text once (ruling B6)."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, String
from sqlalchemy.types import TypeDecorator
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.host.context import Context
from activities.jobs.record_tree import TreeRecorder
from activities.pipelines.record_run import RunRecorder
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import (
    attempt_rows,
    claim_rows,
    event_rows,
    job_rows,
    permanent_errors,
    round_rows,
    schema,
    tree_rows,
)
from activities.store.attempt_rows import Offered
from activities.store.database import open_store
from activities.store.registry import agent_rows, repo_rows
from tests.activities.store.rows import ROOT, job, task
from tests.pipeline.plans import an_input, shell
from tests.tree.simulator import World, tree_input
from workflows.contract.size_limits import BOUNDS, MOST_TOKENS
from workflows.model.errors import NotFoundError
from workflows.model.jobs import JobOutcome
from workflows.model.rounds import RoundKind
from workflows.model.rows import EventRecord, QuestionRecord, Records, RoundRecord
from workflows.model.spend import Usage
from workflows.model.states import JobState
from workflows.model.workers import Worker
from workflows.pipeline.rows import first_rows, reduced_rows
from workflows.policy.storable_rows import reduce_row
from workflows.temporal.calls import REFUSED

pytestmark = pytest.mark.ruling("B6")

COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("jobs.delegation_id", "pipeline_stages.stage_id", "pipeline_runs.halt_stage", "pipelines.name"),
    "agent": ("agents.name", "agent_repos.agent", "jobs.agent", "memory.agent"),
    "role": ("jobs.agent", "agents.role"),
    "phase": ("jobs.phase",),
    "model": ("jobs.model", "agents.model"),
    "effort": ("jobs.effort", "agents.effort"),
    "repo": ("repos.name", "jobs.repo", "tasks.repo", "rounds.repo", "reviews.repo", "memory.repo", "pipelines.repo"),
    "title": ("tasks.title",),
    "reason": ("jobs.reason", "tasks.reason", "pipeline_runs.reason", "pipeline_stages.reason"),
    "summary": ("jobs.summary", "pipeline_stages.summary"),
    "agent_template": ("agents.template",),
    "session": ("agent_sessions.session",),
    "author": ("review_notes.author",),
    "label": ("reviews.workflow",),
}


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_no_column_is_narrower_than_the_bound_of_what_stands_in_it(name: str) -> None:
    for column in COLUMNS[name]:
        table, _, key = column.partition(".")
        kind = schema.metadata.tables[table].c[key].type
        plain = kind.impl if isinstance(kind, TypeDecorator) else kind
        assert isinstance(plain, String)
        assert plain.length is None or plain.length >= BOUNDS[name].characters, column


def widest(name: str, letter: str = "\U0001f600") -> str:
    """Return as many characters as the bound allows, of four bytes each: a limit in bytes would refuse it."""
    return letter * BOUNDS[name].characters


def everything() -> Records:
    """Return rows in which every text has its longest length."""
    row = job(f"{ROOT}.1").model_copy(
        update={
            "delegation_id": "x" * 64,
            "repo": "r" * BOUNDS["repo"].characters,
            "agent": widest("role"),
            "model": widest("model"),
            "effort": widest("effort"),
            "phase": widest("phase"),
            "reason": widest("reason"),
            "summary": widest("summary"),
            "usage": Usage(input_tokens=MOST_TOKENS, output_tokens=MOST_TOKENS),
        }
    )
    question = QuestionRecord(id="q" * 64, prompt=widest("question"), choices=(widest("choice"),), job_id=ROOT)
    return Records(
        task=task().model_copy(update={"title": widest("title"), "reason": widest("reason")}),
        jobs=(row,),
        events=(event(message=widest("reason")),),
        rounds=(a_round(question),),
    )


def event(**fields: Any) -> EventRecord:
    base = {"event_id": f"{ROOT}-e1", "job_id": ROOT, "root_job_id": ROOT, "kind": "round_opened", "at": 1.0}
    return EventRecord(**{**base, "message": "m", **fields})


def a_round(question: QuestionRecord) -> RoundRecord:
    return RoundRecord(
        round_id=f"{ROOT}-r1",
        root_job_id=ROOT,
        coordinator_id=ROOT,
        job_id=ROOT,
        task_id="task-0123456789ab",
        repo="acme/shop",
        number=1,
        kind=RoundKind.ASK,
        digest="d" * 64,
        revision=1,
        questions=(question,),
        opened_at=1.0,
        expires_at=2.0,
    )


def test_every_text_at_its_bound_is_stored_and_read_back_as_it_was(store: Engine) -> None:
    records = everything()
    job_rows.write(store, records)
    assert job_rows.get(store, f"{ROOT}.1") == records.jobs[0]
    assert job_rows.task_of(store, ROOT) == records.task
    assert round_rows.of_tree(store, ROOT) == list(records.rounds)


def test_a_registration_at_its_bounds_is_stored(store: Engine) -> None:
    repo_rows.put(store, f"{'o' * 99}/{'r' * 100}", "/path", "host")
    worker = Worker(
        name="a" * 64,
        runtime="runtime_a",
        model=widest("model"),
        effort=widest("effort"),
        role=widest("role"),
        template=widest("agent_template", "t"),
    )
    assert agent_rows.add(store, worker, (f"{'o' * 99}/{'r' * 100}",))
    agent = agent_rows.get(store, "a" * 64)
    assert agent is not None
    assert agent.worker == worker


def record(store: Engine, home: Home, records: Records) -> None:
    ActivityEnvironment().run(TreeRecorder(Context(home, Settings(), store)).record, records)


HOSTILE: dict[str, dict[str, Any]] = {
    "a surrogate": {"summary": "a\ud800b"},
    "too many tokens": {"usage": Usage(input_tokens=10**30)},
}
HOSTILE_TO_POSTGRES: dict[str, dict[str, Any]] = {
    "a NUL": {"reason": "a\0b"},
    "a long phase": {"phase": "p" * 201},
    "a long role": {"agent": "r" * 3_000},
}


@pytest.mark.parametrize("what", [*HOSTILE, *HOSTILE_TO_POSTGRES])
def test_a_row_that_never_fits_is_refused_once_and_taken_when_it_is_shortened(
    store: Engine, home: Home, what: str
) -> None:
    if what in HOSTILE_TO_POSTGRES and store.dialect.name == "sqlite":
        pytest.skip("SQLite takes it")
    row = job().model_copy(update={"result_digest": "d" * 64, **(HOSTILE | HOSTILE_TO_POSTGRES)[what]})
    records = everything().model_copy(update={"jobs": (row,)})
    with pytest.raises(ApplicationError, match=r"^\w+Error: |^\w+: ") as refused:
        record(store, home, records)
    assert refused.value.non_retryable
    assert refused.value.type == REFUSED
    assert job_rows.task_of(store, ROOT) is None, "all of it or nothing of it"
    record(store, home, reduce_row(records))
    assert job_rows.task_of(store, ROOT) is not None
    kept = job_rows.get(store, ROOT)
    assert kept is not None
    assert (kept.state, kept.result_digest) == (row.state, row.result_digest)


def test_an_event_that_never_fits_is_taken_when_it_is_shortened(store: Engine, home: Home) -> None:
    event_ = event(message="m\ud800", kind="k" * 70, data={"x\0": ["\ud800"], "n": 10**400, "f": float("inf")})
    records = Records(events=(event_,))
    with pytest.raises(ApplicationError):
        record(store, home, records)
    record(store, home, reduce_row(records))
    assert [each.event_id for each in event_rows.of_tree(store, ROOT)] == [event_.event_id]


def test_rows_of_a_run_that_never_fit_are_written_shortened(store: Engine, home: Home) -> None:
    books = RunRecorder(Context(home, Settings(), store))
    records = first_rows(an_input(shell("a")))
    bad = records.model_copy(
        update={"stages": tuple(stage.model_copy(update={"summary": "\ud800"}) for stage in records.stages)}
    )
    with pytest.raises(ApplicationError) as refused:
        books.record_run(bad)
    books.record_run(reduced_rows(bad, refused.value.message))


def test_a_store_that_is_locked_is_waited_for(home: Home) -> None:
    store = open_store(home)
    with sqlite3.connect(home.store, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with store.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout=1")
        with pytest.raises(Exception, match="database is locked") as waits:
            record(store, home, Records(task=task()))
        other.execute("ROLLBACK")
    assert not isinstance(waits.value, ApplicationError)
    assert not permanent_errors.for_good(waits.value)
    record(store, home, Records(task=task()))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (lambda: "\ud800".encode(), True),
        (lambda: (_ for _ in ()).throw(NotFoundError("no artifact")), True),
        (lambda: (_ for _ in ()).throw(OSError(28, "No space left on device")), False),
        (lambda: (_ for _ in ()).throw(ConnectionError("gone")), False),
    ],
)
def test_what_passes_and_what_does_not(error: Callable[[], object], expected: bool) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - of any kind
        error()
    assert permanent_errors.for_good(raised.value) is expected


def test_an_outcome_as_a_program_wrote_it_is_stored(store: Engine) -> None:
    run = claim_rows.begin(store, Offered(ROOT, 1), host="h", run_dir="/r")
    assert run is not None
    outcome = JobOutcome(job_id=ROOT, state=JobState.FAILED, reason="x" * 100_000)
    attempt_rows.close(store, run, outcome, {"a": "\ufffd"}, {"stderr": "b" * 10_000})
    attempt = attempt_rows.get(store, ROOT, 1)
    assert attempt is not None
    assert attempt.known_outcome == outcome


@pytest.mark.ruling("D4")
def test_a_state_that_is_never_kept_is_refused_once(home: Home) -> None:
    store, blocked = open_store(home), World(tree_input()).begin().state
    recorder = TreeRecorder(Context(home, Settings(), store))
    with store.begin() as connection:
        words = "CREATE TRIGGER never BEFORE UPDATE ON trees BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        connection.exec_driver_sql(words)
    with pytest.raises(ApplicationError, match="IntegrityError: not this one") as refused:
        ActivityEnvironment().run(recorder.keep_tree, blocked)
    assert (refused.value.type, refused.value.non_retryable) == (REFUSED, True)
    with store.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER never")
    ActivityEnvironment().run(recorder.keep_tree, blocked)
    kept = tree_rows.get(store, blocked.root_id)
    assert kept is not None
    assert kept.state == blocked
