"""Who may end an attempt whose host is lost: the host or the tree, decided once (ruling Q5)."""

import time
from threading import Barrier, Thread

import pytest
from sqlalchemy import Engine, update

from activities.store import attempt_rows, claim_rows, moves, schema
from activities.store.attempt_rows import AttemptRow, Deferral, Offered
from activities.store.registry import host_rows
from workflows.model.jobs import JobOutcome
from workflows.model.states import JobState
from workflows.policy.moving import Move

pytestmark = pytest.mark.ruling("Q5.claim")
JOB = "job-0c5e2v7q9a3k"


def move(host: str = "a", **fields: object) -> Move:
    return Move.model_validate({"job_id": JOB, "attempt": 1, "host": host, "reason": "its host a is lost"} | fields)


def begun(store: Engine, host: str = "a", offer: int = 1) -> AttemptRow | None:
    return claim_rows.begin(store, Offered(JOB, 1, offer), host=host, run_dir="/runs/1")


def given_up(store: Engine, order: Move, offer: int = 1) -> JobOutcome | None:
    outcome = moves.give_up(store, Offered(JOB, 1, offer), order)
    return None if outcome is None else JobOutcome.model_validate(outcome)


def recorded(store: Engine, row: AttemptRow) -> None:
    done = JobOutcome(job_id=JOB, state=JobState.SUCCEEDED, begun_at=row.started_at)
    attempt_rows.close(store, row, done, {}, {})


def test_a_begun_attempt_moves_with_its_tokens_and_its_host_records_nothing_more(store: Engine) -> None:
    row = begun(store)
    assert row is not None
    attempt_rows.defer(store, Deferral(JOB, 1, 1, "codex", "limit", "full", 1.0, 2.0, input_tokens=70, output_tokens=7))
    outcome = given_up(store, move())
    assert outcome is not None
    assert (outcome.moved, outcome.begun_at, outcome.reason) == (True, row.started_at, "its host a is lost")
    assert outcome.usage.total == 77
    recorded(store, row)
    assert given_up(store, move()) == outcome, "a repeated order finds what was decided"
    assert [job_id for job_id, _ in moves.to_keep(store, "a")] == [JOB]
    assert attempt_rows.all_open(store) == []


def test_what_its_host_had_recorded_is_the_outcome(store: Engine) -> None:
    row = begun(store)
    assert row is not None
    recorded(store, row)
    outcome = given_up(store, move())
    assert outcome is not None
    assert (outcome.moved, outcome.state) == (False, JobState.SUCCEEDED)
    assert moves.to_keep(store, "a") == []


def test_an_offer_that_was_given_up_is_not_begun_there_but_under_its_next_number(store: Engine) -> None:
    outcome = given_up(store, move(begun=False))
    assert outcome is not None
    assert (outcome.moved, outcome.begun_at) == (True, None)
    assert begun(store) is None
    assert begun(store, "b", offer=2) is not None
    assert given_up(store, move(), offer=2) is None, "an order about the first host does not touch the second"


def test_a_drained_host_keeps_what_it_has_begun(store: Engine) -> None:
    begun(store)
    assert given_up(store, move(begun=False)) is None


def test_a_host_that_came_back_keeps_its_attempts(store: Engine) -> None:
    begun(store)
    host_rows.see(store, "a", slots=1, started_at=1.0)
    [host] = host_rows.every(store)
    with store.begin() as connection:
        connection.execute(update(schema.hosts).values(seen_at=host.seen_at + 1))
    assert given_up(store, move(last_seen=host.seen_at)) is None
    assert given_up(store, move(last_seen=host.seen_at + 1)) is not None


@pytest.mark.parametrize("turn", range(5))
def test_a_host_and_a_tree_that_decide_at_once_decide_the_same(store: Engine, turn: int) -> None:
    row, together = begun(store), Barrier(2)
    assert row is not None
    kept: list[JobOutcome | None] = []

    def records() -> None:
        together.wait()
        recorded(store, row)

    def gives_up() -> None:
        together.wait()
        kept.append(given_up(store, move()))

    threads = [Thread(target=records), Thread(target=gives_up)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = attempt_rows.get(store, JOB, 1)
    assert left is not None
    assert kept == [left.known_outcome]


def test_kept_work_is_looked_at_once(store: Engine) -> None:
    begun(store)
    given_up(store, move())
    [moved] = moves.to_keep(store, "a")
    moves.keep(store, moved, "refs/service/kept/x-1")
    assert moves.to_keep(store, "a") == []


@pytest.mark.ruling("Q1")
def test_an_attempt_is_dated_by_the_databases_clock(store: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    if store.dialect.name == "sqlite":
        pytest.skip("one machine has one clock")
    host_rows.see(store, "a", slots=1, started_at=1.0)
    [host] = host_rows.every(store)
    monkeypatch.setattr(time, "time", lambda: host.now - 3600)
    row = begun(store)
    assert row is not None
    recorded(store, row)
    left = attempt_rows.get(store, JOB, 1)
    assert left is not None
    assert left.ended_at is not None
    assert host.now <= left.started_at <= left.ended_at
