"""Rounds on every database: the newest revision counts, and the oldest open round comes first."""

from typing import Any

import pytest
from sqlalchemy import Engine

from activities.store import round_rows
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.rows import FailingRecord, QuestionRecord, RoundRecord
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("F1")
ROOT, OTHER = "job-0123456789ab", "job-0123456789ac"


def a_round(coordinator: str = ROOT, number: int = 1, **fields: Any) -> RoundRecord:
    base: dict[str, Any] = {
        "round_id": f"{coordinator}-r{number}",
        "root_job_id": coordinator.split(".")[0],
        "coordinator_id": coordinator,
        "job_id": coordinator,
        "task_id": "task-0123456789ab",
        "repo": "acme/shop",
        "number": number,
        "kind": RoundKind.ASK,
        "digest": "d" * 64,
        "revision": 1,
        "questions": (QuestionRecord(id="store", prompt="Which? שלום", choices=("a", "b"), job_id=coordinator),),
        "verbs": ("answer", "extend"),
        "commands": (f'service resume {coordinator} answer "store: <text>"',),
        "opened_at": 10.0,
        "expires_at": 20.0,
    }
    return RoundRecord.model_validate(base | fields)


CLOSED: dict[str, Any] = {
    "end": RoundEnd.ANSWERED,
    "closed_at": 15.0,
    "closed": "answered by ann",
    "said": "b",
    "verbs": (),
}


def write(store: Engine, *records: RoundRecord) -> None:
    with store.begin() as connection:
        round_rows.write(connection, records)


def test_a_round_comes_back_as_it_was_written(store: Engine) -> None:
    failing = FailingRecord(leg="a", job_id=f"{ROOT}.1", attempt=2, state=JobState.FAILED, reason='says "no"')
    asked, failed = a_round(), a_round(number=2, kind=RoundKind.FAILURE, questions=(), failing=(failing,), **CLOSED)
    write(store, asked, failed)
    assert round_rows.get(store, asked.round_id) == asked
    assert round_rows.get(store, failed.round_id) == failed
    assert round_rows.get(store, f"{ROOT}-r3") is None


def test_a_late_or_repeated_write_does_not_open_a_round_again(store: Engine) -> None:
    write(store, a_round(revision=3))
    write(store, a_round(revision=5, **CLOSED))
    for late in (a_round(revision=3), a_round(revision=5, said="another text")):
        write(store, late)
    kept = round_rows.get(store, f"{ROOT}-r1")
    assert kept is not None
    assert (kept.revision, kept.said, kept.end) == (5, "b", RoundEnd.ANSWERED)
    assert round_rows.open_rounds(store) == []


def test_open_rounds_are_the_oldest_first_of_one_tree_or_of_all(store: Engine) -> None:
    write(store, a_round(number=2, opened_at=30.0), a_round(f"{ROOT}.2", opened_at=12.0), a_round(**CLOSED))
    write(store, a_round(OTHER, opened_at=11.0))
    assert [each.round_id for each in round_rows.open_rounds(store)] == [f"{OTHER}-r1", f"{ROOT}.2-r1", f"{ROOT}-r2"]
    assert [each.round_id for each in round_rows.open_rounds(store, root=ROOT)] == [f"{ROOT}.2-r1", f"{ROOT}-r2"]
    assert [each.round_id for each in round_rows.of_tree(store, ROOT)] == [f"{ROOT}-r1", f"{ROOT}.2-r1", f"{ROOT}-r2"]
