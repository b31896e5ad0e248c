"""Which attempts move to another host: begun or not is the difference (rulings Q4.freed, Q5)."""

import pytest

from workflows.model.jobs import JobOutcome
from workflows.model.states import JobState
from workflows.policy.host_availability import HostSeen
from workflows.policy.moving import (
    Move,
    leaves,
    move_off_drained_host,
    move_off_full_host,
    move_off_lost_host,
    moves_as_it_is,
)

pytestmark = pytest.mark.ruling("Q5", "Q5.claim")
LOST = HostSeen("web-1", seen_at=100.0, now=800.0)
ORDERS = (
    move_off_lost_host(LOST),
    move_off_lost_host(LOST, "ann"),
    move_off_drained_host("web-1"),
    move_off_full_host("web-1", "web-2"),
)


@pytest.mark.parametrize(
    "order",
    [
        move_off_lost_host(LOST),
        move_off_lost_host(LOST, "ann"),
        move_off_drained_host("web-1"),
        move_off_full_host("web-1", "b"),
    ],
)
def test_what_no_host_has_begun_leaves_any_of_them(order: Move) -> None:
    assert leaves(order, None, seen_at=100.0)


def test_a_begun_attempt_leaves_only_its_lost_host() -> None:
    assert leaves(move_off_lost_host(LOST), "web-1", seen_at=None)
    assert not leaves(move_off_lost_host(LOST), "web-2", seen_at=None)
    assert not leaves(move_off_drained_host("web-1"), "web-1", seen_at=None)
    assert not leaves(move_off_full_host("web-1", "web-2"), "web-1", seen_at=None)


def test_a_host_that_was_seen_since_keeps_its_attempts_unless_a_person_has_declared_it_lost() -> None:
    for begun_on in (None, "web-1"):
        assert [leaves(move_off_lost_host(LOST), begun_on, at) for at in (None, 100.0, 100.1)] == [True, True, False]
        assert leaves(move_off_lost_host(LOST, "ann"), begun_on, seen_at=900.0)


def test_an_order_says_why() -> None:
    assert move_off_lost_host(LOST).reason.startswith("its host web-1 is lost: not seen since ")
    assert move_off_lost_host(HostSeen("web-1")).reason == "its host web-1 is lost: not seen since ever"
    assert move_off_lost_host(LOST, "ann").reason == "ann declared its host web-1 lost"
    assert move_off_full_host("web-1", "web-2").reason == "its host web-1 is full, and web-2 has a free slot"


@pytest.mark.parametrize(
    ("moved", "begun_at", "as_it_is"), [(True, None, True), (True, 5.0, False), (False, None, False)]
)
def test_a_moved_job_that_had_begun_begins_again(moved: bool, begun_at: float | None, as_it_is: bool) -> None:
    outcome = JobOutcome(job_id="job-1", state=JobState.CANCELLED, moved=moved, begun_at=begun_at)
    assert moves_as_it_is(outcome) is as_it_is
