"""Every kind of event, in a tree that records it."""

from collections.abc import Callable
from typing import cast

import pytest

from bridge.operations.refused_agents import event_of
from tests.tree.simulator import ROOT, World, delegation, tokens, tree_input
from workflows.contract.models import Delegation, HumanQuestion, Notice
from workflows.contract.parse import Accepted, read_result
from workflows.model.event_kinds import EventKind
from workflows.model.event_payloads import PAYLOADS, UnfitPayloadError, check_payload
from workflows.model.settings import Bounds
from workflows.model.states import Continuation
from workflows.policy.lost_trees import dismissed_rows, lost_rows
from workflows.tree.events import RecordRefused
from workflows.tree.step import Step

ASKS = (HumanQuestion(id="q", prompt="which?"),)


def tree(*legs: Delegation, bounds: Bounds | None = None, **fields: object) -> World:
    world = World(tree_input(bounds)).begin()
    world.coordinator("approved", *legs, **fields)
    return world


def too_wide() -> World:
    return tree(delegation("a"), delegation("b"), bounds=Bounds(max_delegation_width=1))


def too_deep() -> World:
    world = tree(delegation("a", "lead"), bounds=Bounds(max_delegation_depth=1))
    world.leg("a", "approved", delegation("x"))
    return world


def finalized() -> World:
    world = too_wide()
    world.coordinator("approved", delegation("c"), human_questions=ASKS)
    return world


def in_circles() -> World:
    world = tree(delegation("a"))
    for _ in range(2):
        if world.last.delegation_id:
            world.leg("a")
        world.coordinator("approved", delegation("a"))
    return world


def unverified() -> World:
    world = tree(delegation("v", synthesis_rule="verify"), bounds=Bounds(max_verify_replan_attempts=0))
    world.leg("v", "changes_requested")
    return world


def lost() -> World:
    world = tree(delegation("a"))
    rows = lost_rows(
        world.state.task, world.state.jobs.values(), (), why="terminated\nby hand", anew="", number=99, now=world.now
    )
    assert rows.task is not None
    world.events += (*rows.events, *dismissed_rows(rows.task, actor="ann", number=100, now=world.now).events)
    world.taken_up()
    return world


def refused_to_an_agent() -> World:
    """Return a tree with an event that an operation records, not the tree."""
    world = tree(delegation("a"))
    world.events.append(event_of(ROOT, "service job kill", "it was refused", world.now))
    return world


def killed() -> World:
    world = World(tree_input()).begin()
    world.kill()
    world.coordinator("approved", delegation("a"))
    return world


def ignored() -> World:
    world = tree(delegation("a", ephemeral=True))
    world.leg("a", "approved", delegation("x"))
    return world


def blocked() -> World:
    world = tree(delegation("a"))
    world.leg("a", "failed")
    world.retry("nothing")
    world.retry(f"{ROOT}.1")
    return world


def deferred() -> World:
    world = tree(delegation("a"), delegation("b"))
    world.leg("a", "failed")
    world.leg("b", human_questions=ASKS)
    return world


def paused() -> World:
    world = tree(delegation("a", failure_policy="escalate_human"), delegation("b", failure_policy="escalate_human"))
    world.leg("a", "failed")
    world.leg("b", "failed")
    world.resume("answer", "yes")
    world.resume("extend", "1h")
    while world.timers:
        world.fire()
    return world


def unrecorded() -> World:
    world = tree(delegation("a"))
    world.feed(RecordRefused(now=world.now, why="DataError: too long", job_ids=(f"{ROOT}.1",)))
    return world


def overtaken() -> World:
    world = tree(human_questions=ASKS)
    world.kill()
    return world


def moved() -> World:
    world = tree(delegation("a"))
    world.move(f"{ROOT}.1")
    return world


def taken_back() -> World:
    world = World(tree_input(), patient=True).begin()
    world.kill()
    world.host()
    return world


def told() -> World:
    """Return a tree with the notices of a real output's reading."""
    body = '{"service_result": {"decision": "approved", "summary": "fine", "sumary": "x"}}'
    reading = read_result(f"{body}\n{body}", after_repair=True)
    assert isinstance(reading, Accepted)
    return tree(notices=reading.notices)


SCENES: dict[EventKind, Callable[[], World]] = {
    EventKind.DELEGATION_PREFLIGHT_FAILED: lambda: tree(delegation("a", "ghost")),
    EventKind.DELEGATION_WALLTIME_EXCEEDED: lambda: tree(
        delegation("a"), bounds=Bounds(max_delegation_wall_clock_seconds=1), after=2
    ),
    EventKind.DELEGATION_COST_EXCEEDED: lambda: tree(
        delegation("a"), bounds=Bounds(max_delegation_token_budget=1), usage=tokens(1)
    ),
    EventKind.DELEGATION_COST_USD_EXCEEDED: lambda: tree(
        delegation("a"), bounds=Bounds(max_delegation_cost_usd=0.001), usage=tokens(10_000)
    ),
    EventKind.DELEGATION_WIDTH_EXCEEDED: too_wide,
    EventKind.DELEGATION_LOOP_WARNING: in_circles,
    EventKind.DELEGATION_LOOP_DETECTED: in_circles,
    EventKind.DELEGATION_KILLED: killed,
    EventKind.DELEGATION_FINALIZE_ENQUEUED: too_wide,
    EventKind.DELEGATION_FINALIZED: finalized,
    EventKind.DELEGATION_DEPTH_EXCEEDED: too_deep,
    EventKind.DELEGATION_BUDGET_EXCEEDED: lambda: tree(
        delegation("a"), delegation("b"), bounds=Bounds(max_delegation_total_jobs=1)
    ),
    EventKind.TREE_STARTED: blocked,
    EventKind.TREE_ENDED: told,
    EventKind.TREE_CUT_SHORT: finalized,
    EventKind.JOB_QUEUED: blocked,
    EventKind.JOB_BEGUN: blocked,
    EventKind.JOB_ENDED: blocked,
    EventKind.JOB_TAKEN_BACK: taken_back,
    EventKind.JOB_MOVED: moved,
    EventKind.BATCH_SETTLED: in_circles,
    EventKind.CONTINUATION_ENQUEUED: in_circles,
    EventKind.DELEGATION_BUDGET_WARNING: lambda: tree(bounds=Bounds(max_delegation_token_budget=10), usage=tokens(8)),
    EventKind.DELEGATION_DROPPED: killed,
    EventKind.DELEGATION_IGNORED_EPHEMERAL: ignored,
    EventKind.VERIFY_REPLAN_EXHAUSTED: unverified,
    EventKind.TASK_BLOCKED: blocked,
    EventKind.RETRY_REQUESTED: blocked,
    EventKind.RETRY_REFUSED: blocked,
    EventKind.HUMAN_QUESTIONS_IGNORED: finalized,
    EventKind.HUMAN_QUESTIONS_DEFERRED: deferred,
    EventKind.ROUND_OPENED: paused,
    EventKind.ROUND_JOINED: paused,
    EventKind.ROUND_REMINDER: paused,
    EventKind.ROUND_EXTENDED: paused,
    EventKind.ROUND_EXPIRED: paused,
    EventKind.ROUND_CLOSED: overtaken,
    EventKind.RESUME_ACCEPTED: paused,
    EventKind.RESUME_REFUSED: paused,
    EventKind.TREE_LOST: lost,
    EventKind.TREE_TAKEN_UP: lost,
    EventKind.TASK_DISMISSED: lost,
    EventKind.RECORD_REFUSED: unrecorded,
    EventKind.RESULT_AMBIGUOUS: told,
    EventKind.RESULT_UNKNOWN_KEYS_DROPPED: told,
    EventKind.RESULT_REPAIRED: lambda: tree(
        notices=(Notice(kind="result_repaired", message="corrected", data={"faults": ["f"], "accepted": True}),)
    ),
    EventKind.TREE_CAVEAT: lambda: World(tree_input(caveat="the check is not independent")).begin(),
    EventKind.WORK_LEFT_OUT: lambda: tree(
        notices=(Notice(kind="work_left_out", message="a pipe", data={"found": ["x: a named pipe"]}),)
    ),
    EventKind.EDITS_DISCARDED: lambda: tree(
        notices=(Notice(kind="edits_discarded", message="thrown away", data={"files": ["a.py"]}),)
    ),
    EventKind.NOTHING_CHANGED: lambda: tree(
        notices=(Notice(kind="nothing_changed", message="no file", data={"claims": 0}),)
    ),
    EventKind.AGENT_REFUSED: refused_to_an_agent,
    EventKind.RUN_STARTED_AGAIN: lambda: tree(
        notices=(Notice(kind="run_started_again", message="once more", data={"attempt": 1}),)
    ),
    EventKind.SESSION_NOT_RESUMED: lambda: tree(
        notices=(Notice(kind="session_not_resumed", message="afresh", data={"session": "s", "why": "gone"}),)
    ),
}


@pytest.mark.ruling("B4", "B7")
@pytest.mark.parametrize("kind", list(EventKind))
def test_every_kind_is_told_by_some_tree_and_its_payload_says_something(kind: EventKind) -> None:
    world = SCENES[kind]()
    events = [event for event in world.events if event.kind == kind]
    assert events
    for event in events:
        check_payload(kind, event.data)
        assert event.data.keys() == PAYLOADS[kind].model_fields.keys()
        assert event.message
        assert "\n" not in event.message


@pytest.mark.ruling("spec:events.delegation_walltime_exceeded", "spec:events.delegation_cost_exceeded")
@pytest.mark.ruling("spec:events.delegation_cost_usd_exceeded", "spec:events.delegation_width_exceeded")
@pytest.mark.parametrize(
    ("kind", "carries"),
    [
        (EventKind.DELEGATION_WALLTIME_EXCEEDED, {"elapsed": 2.0, "budget": 1.0}),
        (EventKind.DELEGATION_COST_EXCEEDED, {"tokens": 1, "budget": 1}),
        (EventKind.DELEGATION_COST_USD_EXCEEDED, {"cost_usd": 0.03, "budget": 0.001, "price_assumed": True}),
        (EventKind.DELEGATION_WIDTH_EXCEEDED, {"width": 2, "cap": 1}),
        (EventKind.DELEGATION_DEPTH_EXCEEDED, {"depth": 1, "cap": 1}),
        (EventKind.DELEGATION_BUDGET_EXCEEDED, {"new_jobs": 2, "jobs": 0, "cap": 1}),
    ],
)
def test_a_bound_that_trips_says_how_much_there_was_and_how_much_was_used(
    kind: EventKind, carries: dict[str, float]
) -> None:
    (event,) = (event for event in SCENES[kind]().events if event.kind == kind)
    assert event.data == pytest.approx(carries)


@pytest.mark.ruling("B4", "spec:events.names")
def test_the_kinds_of_the_spec_and_of_the_ruling_are_named_as_there() -> None:
    spec = {
        "delegation_preflight_failed",
        "delegation_walltime_exceeded",
        "delegation_cost_exceeded",
        "delegation_cost_usd_exceeded",
        "delegation_width_exceeded",
        "delegation_loop_warning",
        "delegation_loop_detected",
        "delegation_killed",
        "delegation_finalize_enqueued",
        "delegation_finalized",
    }
    ruling = {"delegation_depth_exceeded", "delegation_budget_exceeded"}
    assert spec | ruling <= {kind.value for kind in EventKind}
    assert PAYLOADS.keys() == SCENES.keys() == set(EventKind)


@pytest.mark.ruling("B4")
@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        ("delegation_exploded", {}, "is not in EventKind"),
        ("task_blocked", {}, "retry"),
        ("task_blocked", {"retry": 3}, "string"),
        ("task_blocked", {"retry": "a", "more": 1}, "more"),
    ],
)
def test_a_payload_that_does_not_fit_its_kind_is_a_bug(kind: str, data: dict[str, int], says: str) -> None:
    step = Step(World(tree_input()).state, 1000.0)
    with pytest.raises(UnfitPayloadError, match=says):
        step.event(cast("EventKind", kind), ROOT, "something", {**data})
    assert step.finish() == []


@pytest.mark.ruling("B4", "engine:total")
@pytest.mark.parametrize("kind", ["of_a_newer_host", "result_ambiguous"])
def test_what_a_run_tells_passes_as_it_is(kind: str) -> None:
    world = tree(notices=(Notice(kind=kind, message="hm", data={"n": 1}),))
    told_of = next(event for event in world.events if event.kind == kind)
    assert (told_of.data, told_of.job_id) == ({"n": 1}, ROOT)


@pytest.mark.ruling("G1")
def test_the_finalize_says_which_event_asked_for_it() -> None:
    world = too_wide()
    assert world.last.continuation is Continuation.FINALIZE
    assert world.said[-1].data["cause"] == "delegation_width_exceeded"
