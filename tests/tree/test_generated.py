"""Generated trees. `ENGINE_TREES=200000` makes a long run of it."""

import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.depth import cases
from tests.tree.generated import grow
from tests.tree.simulator import AGENTS, ROOT, World, delegation, tree_input
from workflows.contract.models import Decision, HumanQuestion
from workflows.model.jobs import JobOutcome
from workflows.model.orders import ResumeOrder
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState
from workflows.tree.commands import Record
from workflows.tree.events import (
    Event,
    JobEnded,
    KillRequested,
    ResumeRequested,
    RetryRequested,
    TimerFired,
    TreeStarted,
)
from workflows.tree.reducer import new_tree, reduce
from workflows.tree.state import TreeMemory

TREES = int(os.environ.get("ENGINE_TREES") or cases(300, 10_000))
RELAXED = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


BLOCKED_AS_IT_STARTS = bytes.fromhex(
    "01151ed8fd03783f60020957043cdd299e1045aaa0a23532ac236b419fffc3f726f0cbe540bb40cbdd199c9511dcae15013a"
    "c46c5f922202b560ee021b1612bd3cb397c37088d6eed3d2c039c64cdca42e2fd6e42ce6dae2007f43d47393c3e279570cbd"
    "69e27e3c78e48006f24318766b15b7e12eac5dfed3ecbb9d4161ec813c409589d7292cd13d785b98fd6437e743d14a5a8303"
    "6c771db798ec93fb42"
)
"""A step starts a leg as a round ends, and then blocks the task: the leg's start must not be sent."""


@pytest.mark.ruling("B1", "B2", "C1", "C2", "C3", "C4", "C5", "C6", "C7", "D1", "D2", "D3", "D4", "D5", "D6")
@pytest.mark.ruling("D7", "E1", "F1", "F2", "F3", "F4", "F8", "F9", "G1", "G2")
@settings(RELAXED, max_examples=TREES)
@example(data=BLOCKED_AS_IT_STARTS)
@given(data=st.binary(min_size=40, max_size=600))
def test_every_tree_keeps_the_invariants_and_replays(data: bytes) -> None:
    """`World` checks after every step; this checks the end, and that equal events give equal commands."""
    world = grow(data)
    assert world.state.task.state in {TaskState.DONE, TaskState.BLOCKED, TaskState.CANCELLED}
    left = [job for job in world.state.jobs.values() if job.state in {JobState.QUEUED, JobState.RUNNING}]
    assert not left or world.state.is_blocked, "only a task that may be opened again has jobs that wait"
    assert all(job.state is JobState.QUEUED and job.next == world.state.task.next for job in left)
    assert all(job.reason == "waits until the blocked task is opened again" for job in left)
    ran = [run for run in world.runs if (run.job_id, run.attempt) not in world.moved]
    finals = [run for run in ran if run.continuation is Continuation.FINALIZE]
    assert finals in ([], [world.last])
    assert not world.open(), "every round ends"
    if data[0] % 4 == 0:
        _replays(world)


def _replays(world: World) -> None:
    state = new_tree(world.start)
    for event, commands in world.history:
        state = TreeMemory.model_validate_json(state.model_dump_json())
        assert reduce(state, event) == commands
    assert state == world.state


_JOBS = st.sampled_from([ROOT, *(f"{ROOT}.{n}" for n in range(1, 6)), "stranger"])
_TIMES = st.floats(allow_nan=True, allow_infinity=True)
_LEGS = st.lists(
    st.builds(
        delegation,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["coder", "lead", "ghost"]),
        deps=st.sampled_from([(), ("a",), ("b",), ("z",)]),
        retry=st.integers(0, 2),
        failure_policy=st.sampled_from([None, "escalate_human"]),
        fingerprint=st.sampled_from([None, "x"]),
    ),
    max_size=3,
).map(tuple)
_OUTCOMES = st.builds(
    JobOutcome,
    job_id=_JOBS,
    attempt=st.integers(1, 2),
    state=st.sampled_from(list(JobState)),
    begun_at=st.sampled_from([None, 1.0]),
    moved=st.booleans(),
    delegations=_LEGS,
    agents=st.sampled_from([(), AGENTS]),
    decision=st.sampled_from([None, Decision.APPROVED, Decision.BLOCKED]),
    human_questions=st.lists(st.builds(HumanQuestion, id=st.sampled_from(["q", "w"]), prompt=st.just("?"))).map(tuple),
    usage=st.builds(Usage, input_tokens=st.integers(-5, 5)),
)
_KEYS = [
    "",
    *(f"retry:{ROOT}.{n}:2" for n in range(1, 4)),
    *(f"round:{ROOT}:{n}:{stage}" for n in (1, 2) for stage in ("half", "ninety", "end", "half:1")),
]
_EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(TreeStarted, now=_TIMES),
    st.builds(JobEnded, now=_TIMES, outcome=_OUTCOMES),
    st.builds(TimerFired, now=_TIMES, key=st.sampled_from(_KEYS)),
    st.builds(
        ResumeOrder,
        actor=st.text(st.characters(exclude_categories=[]), max_size=3),
        channel=st.sampled_from(["cli", "a\nb"]),
        job_id=_JOBS,
        verb=st.sampled_from(["answer", "retry", "continue", "abort", "extend", "x\n\ud800"]),
        text=st.one_of(st.text(st.characters(exclude_categories=[]), max_size=9), st.sampled_from(["1h", "q: a"])),
        round=st.sampled_from([None, -1, 0, 1, 2]),
        digest=st.sampled_from(["", "", "", "abc"]),
        request_id=st.sampled_from(["", "", "r1", "r2"]),
    ).flatmap(lambda order: st.builds(ResumeRequested, now=_TIMES, order=st.just(order))),
    st.builds(KillRequested, now=_TIMES, actor=st.just("x"), immediate=st.booleans()),
    st.builds(RetryRequested, now=_TIMES, actor=st.just("x"), job_id=_JOBS),
)


@pytest.mark.ruling("B2", "engine:total")
@settings(RELAXED, max_examples=max(100, TREES // 20))
@example(events=[JobEnded(now=0, outcome=JobOutcome(job_id=ROOT, state=JobState.RUNNING)), TreeStarted(now=0)])
@given(events=st.lists(_EVENTS, max_size=25))
def test_the_reducer_takes_any_event_in_any_state(events: list[Event]) -> None:
    state = new_tree(tree_input())
    for event in [TreeStarted(now=1000), *events]:
        before = state.revision
        commands = reduce(state, event)
        assert state.revision - before == bool(commands)
        for command in commands:
            assert command.model_dump_json()
            assert not (isinstance(command, Record) and any("\n" in each.message for each in command.records.events))
        assert TreeMemory.model_validate_json(state.model_dump_json()) == state
