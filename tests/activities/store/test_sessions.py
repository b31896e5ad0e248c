"""Counters of whole sessions: only the tokens that a turn added are counted (spec: token capture)."""

import pytest
from sqlalchemy import Engine

from activities.store.sessions import spent
from workflows.model.spend import Usage

pytestmark = pytest.mark.ruling("spec:limits.token_capture")


def used(store: Engine, turn: str, total: int, *, fresh: bool = False, session: str = "s") -> int:
    usage = spent(store, "runtime_a", session, turn, Usage(input_tokens=total, output_tokens=total), fresh=fresh)
    assert usage.input_tokens == usage.output_tokens
    return usage.input_tokens


def test_a_fresh_session_counts_whole_and_its_repair_only_what_it_added(store: Engine) -> None:
    assert used(store, "job.1", 1000, fresh=True) == 1000
    assert used(store, "job.1.repair", 2500) == 1500


def test_told_again_a_turn_used_the_same(store: Engine) -> None:
    for _ in range(2):
        assert used(store, "job.1", 1000, fresh=True) == 1000
    for _ in range(2):
        assert used(store, "job.1.repair", 2500) == 1500


def test_a_session_with_an_unknown_past_counts_nothing_at_first(store: Engine) -> None:
    for _ in range(2):
        assert used(store, "job.1", 90_000) == 0
    assert used(store, "job.2", 91_000) == 1000


def test_a_counter_that_goes_backwards_counts_nothing_and_goes_on_from_there(store: Engine) -> None:
    assert used(store, "job.1", 5000, fresh=True) == 5000
    assert used(store, "job.2", 700) == 0
    assert used(store, "job.3", 900) == 200


def test_sessions_do_not_mix(store: Engine) -> None:
    assert used(store, "job.1", 1000, fresh=True) == 1000
    assert used(store, "job.2", 400, fresh=True, session="t") == 400
    assert used(store, "job.1.repair", 1100) == 100
