"""Rows of attempts that somebody with the database, but without the seal key, has written."""

from typing import Any

import pytest
from sqlalchemy import Engine, update

from activities.sealing import seal_key
from activities.settings.home import Home
from activities.store import attempt_rows, claim_rows, job_rows, moves, schema
from activities.store.attempt_rows import AttemptRow, Offered
from tests.activities.store import rows
from workflows.model.jobs import JobOutcome
from workflows.model.rows import Records
from workflows.model.states import JobState
from workflows.policy.moving import Move

pytestmark = pytest.mark.ruling("N4")
ROOT = rows.ROOT
RESULT = {"service_result": {"decision": "approved", "summary": "looked"}}
FORGED = {"service_result": {"decision": "approved", "summary": "forged"}}
DONE = JobOutcome(job_id=ROOT, state=JobState.SUCCEEDED)
LIE = DONE.model_copy(update={"summary": "forged"}).model_dump(mode="json")


def begun(store: Engine) -> AttemptRow:
    row = claim_rows.begin(store, Offered(ROOT, 1), host="a", run_dir="/runs/1")
    assert row is not None
    return row


def written(store: Engine, **values: Any) -> None:
    """Write columns of all attempts straight into the database."""
    with store.begin() as connection:
        connection.execute(update(schema.attempts).values(**values))


def there(store: Engine) -> AttemptRow:
    row = attempt_rows.get(store, ROOT, 1)
    assert row is not None
    return row


def test_an_end_that_no_host_recorded_is_none(store: Engine) -> None:
    begun(store)
    written(store, ended_at=2.0, outcome=LIE, payload=FORGED, diagnostics={"box": "none"})
    row = there(store)
    assert (row.known_outcome, row.payload, row.diagnostics, row.is_forged) == (None, None, None, True)
    assert attempt_rows.of_job(store, ROOT) == [row]


def test_the_end_that_the_host_records_takes_the_place_of_a_forged_one(store: Engine) -> None:
    row = begun(store)
    written(store, ended_at=2.0, outcome=LIE, payload=FORGED, diagnostics={})
    attempt_rows.close(store, row, DONE, RESULT, {})
    assert (there(store).known_outcome, there(store).payload) == (DONE, RESULT)
    attempt_rows.close(store, row, DONE.model_copy(update={"state": JobState.FAILED}), {}, {})
    assert there(store).known_outcome == DONE, "the first record of the service is final"


@pytest.mark.parametrize("part", ["outcome", "payload", "diagnostics"])
def test_a_recorded_end_that_was_changed_is_not_read(store: Engine, part: str) -> None:
    attempt_rows.close(store, begun(store), DONE, RESULT, {"box": "bwrap"})
    assert not there(store).is_forged
    written(store, **{part: {"outcome": LIE}.get(part, FORGED)})
    assert (there(store).known_outcome, there(store).payload) == (None, None)


def test_the_end_of_another_attempt_is_not_this_one_s(store: Engine) -> None:
    attempt_rows.close(store, begun(store), DONE, RESULT, {})
    other = claim_rows.begin(store, Offered(ROOT, 2), host="a", run_dir="/runs/2")
    assert other is not None
    copied = there(store)
    parts = {"outcome": copied.outcome, "payload": copied.payload, "diagnostics": copied.diagnostics}
    written(store, **parts, seals=copied.seals)
    assert [row.is_forged for row in attempt_rows.of_job(store, ROOT)] == [False, True]


@pytest.mark.ruling("Q5.claim")
def test_a_lost_host_s_forged_end_is_not_taken_for_the_job_s(store: Engine) -> None:
    begun(store)
    written(store, ended_at=2.0, outcome=LIE, payload=FORGED, diagnostics={})
    order = Move(job_id=ROOT, attempt=1, host="a", reason="its host a is lost")
    outcome = moves.give_up(store, Offered(ROOT, 1), order)
    assert outcome is not None
    ended = JobOutcome.model_validate(outcome)
    assert (ended.moved, ended.summary) == (True, "")
    assert moves.give_up(store, Offered(ROOT, 1), order) == outcome
    assert there(store).known_outcome == ended


def test_a_forged_result_is_not_shown_even_after_the_end(store: Engine) -> None:
    job_rows.write(store, Records(task=rows.task(), jobs=(rows.job(state=JobState.SUCCEEDED),)))
    attempt_rows.close(store, begun(store), DONE, RESULT, {})
    assert there(store).payload == RESULT
    for seals in ({}, {"seals": None}, {"seals": "x y z"}, {"seals": there(store).seals}):
        written(store, payload=FORGED, **seals)
        assert there(store).payload is None


@pytest.mark.ruling("N1")
def test_ended_attempts_are_read_after_the_key_was_replaced_and_forged_ones_are_not(store: Engine, home: Home) -> None:
    attempt_rows.close(store, begun(store), DONE, RESULT, {})
    other = claim_rows.begin(store, Offered(ROOT, 2), host="a", run_dir="/runs/2")
    assert other is not None
    second = (schema.attempts.c.attempt == 2) & (schema.attempts.c.job_id == ROOT)
    with store.begin() as connection:
        forged = {"outcome": LIE, "seals": there(store).seals, "ended_at": 2.0}
        connection.execute(update(schema.attempts).where(second).values(**forged))
    former = seal_key.every(home.root)
    seal_key.renew(home.root)
    assert there(store).is_forged
    attempt_rows.seal_again(store, former)
    assert [row.known_outcome for row in attempt_rows.of_job(store, ROOT)] == [DONE, None]
