from collections.abc import Iterator
from itertools import product

import pytest

from tests.tree.largest import BLOB, largest, the_largest_agent, the_largest_leg, the_largest_set
from tests.tree.simulator import ROOT, World, delegation, tree_input
from workflows.contract.models import Delegation, HumanQuestion
from workflows.contract.size_limits import DELEGATIONS_BYTES, size
from workflows.model.settings import Bounds
from workflows.model.states import JOB_MOVES, TASK_MOVES, IllegalMoveError, JobState, TaskState, check_job, check_task
from workflows.model.wire import Memory, Wire
from workflows.temporal.messages import TreeStart
from workflows.tree.commands import Command, Record, RunChild, RunCoordinator
from workflows.tree.events import KillRequested
from workflows.tree.state import TreeMemory
from workflows.tree.step import Step

LIMIT = 256 * 1024


def wide(prompt: str = "p" * 1000) -> World:
    """Return a tree with sixty-four jobs in one batch, each leg with all its fields."""
    tree = World(tree_input(Bounds(max_delegation_width=64))).begin()
    legs: list[Delegation] = [
        delegation(f"leg-{n:02}", prompt=prompt, synthesis_rule="verify", phase="implement", retry=1) for n in range(64)
    ]
    tree.coordinator("approved", *legs)
    return tree


def parts(value: object) -> Iterator[object]:
    """Yield all values that a value is made of."""
    yield value
    inner = vars(value).values() if isinstance(value, Memory) else value.values() if isinstance(value, dict) else ()
    for part in (*inner, *(value if isinstance(value, list) else ())):
        yield from parts(part)


@pytest.mark.ruling("F4")
def test_a_verb_is_tried_on_a_copy_that_shares_frozen_values_and_nothing_that_changes() -> None:
    tree = wide()
    tree.leg("leg-00", "approved", human_questions=(HumanQuestion(id="q", prompt="which?"),))
    copied = tree.state.model_copy(deep=True)
    assert copied == tree.state
    pairs = list(zip(parts(tree.state), parts(copied), strict=True))
    assert len([one for one, _ in pairs if isinstance(one, Memory)]) > 64
    assert all(one is other for one, other in pairs if isinstance(one, Wire))
    assert not any(one is other for one, other in pairs if isinstance(one, Memory | list | dict))


@pytest.mark.ruling("engine:small")
def test_sixty_four_jobs_stay_under_256_kib_from_the_first_to_the_last() -> None:
    tree = wide()
    assert len(tree.state.model_dump_json()) < LIMIT
    for n in range(63):
        files = tuple(f"src/package/module_{n}.py" for n in range(4))
        tree.leg(f"leg-{n:02}", "implemented", summary="s" * 5000, branch=f"service/{ROOT}.{n}", touched_files=files)
    assert len(tree.state.model_dump_json()) < LIMIT


@pytest.mark.ruling("engine:small")
def test_only_changed_rows_are_written() -> None:
    tree = wide()
    [record] = [command for command in tree.leg("leg-07") if isinstance(command, Record)]
    assert [job.job_id for job in record.records.jobs] == [f"{ROOT}.8"]
    assert record.records.task is None


@pytest.mark.ruling("engine:restores")
def test_a_restored_tree_is_the_same_tree() -> None:
    tree = wide()
    assert TreeMemory.model_validate_json(tree.state.model_dump_json()) == tree.state
    assert not tree.state.quiescent


@pytest.mark.ruling("B2")
def test_a_move_that_is_not_in_the_table_raises() -> None:
    with pytest.raises(IllegalMoveError, match="running -> skipped"):
        check_job("j", JobState.RUNNING, JobState.SKIPPED)
    with pytest.raises(IllegalMoveError, match="done -> open"):
        check_task(TaskState.DONE, TaskState.OPEN)
    check_task(TaskState.DONE, TaskState.DONE)


@pytest.mark.ruling("B2")
def test_a_step_that_makes_such_a_move_raises_and_changes_nothing() -> None:
    state = World(tree_input()).begin().state
    step = Step(state, state.now)
    with pytest.raises(IllegalMoveError, match=f"job {ROOT}: running -> queued"):
        step.change(ROOT, state=JobState.QUEUED)
    step.task(TaskState.DONE, "", "")
    with pytest.raises(IllegalMoveError, match="task: done -> open"):
        step.task(TaskState.OPEN, "", "")
    assert (state.jobs[ROOT].state, state.task.state) == (JobState.RUNNING, TaskState.DONE)


@pytest.mark.ruling("B2")
def test_the_tables_name_every_state() -> None:
    assert JOB_MOVES.keys() == set(JobState)
    assert TASK_MOVES.keys() == set(TaskState)


@pytest.mark.ruling("B6")
@pytest.mark.parametrize(
    "letter",
    ["\x01", "\U0001f600", *(pytest.param(letter, marks=pytest.mark.long) for letter in ("s", "\u00e9", "\n"))],
)
def test_the_largest_tree_there_can_be_continues_as_new_far_below_what_a_server_takes(letter: str) -> None:
    tree = World(tree_input(Bounds(max_delegation_width=63, max_delegation_total_jobs=64))).begin()
    legs = [the_largest_leg(n, letter, DELEGATIONS_BYTES // 63) for n in range(63)]
    assert sum(size(leg.model_dump(mode="json", exclude={"prompt"}, exclude_defaults=True)) for leg in legs) <= (
        DELEGATIONS_BYTES
    )
    tree.coordinator("approved", *legs)
    for leg in legs:
        tree.leg(
            leg.id,
            "changes_requested",
            summary=letter * 2_000,
            reason=letter * 2_000,
            findings=letter * 4_000,
            touched_files=tuple(f"{letter * 250}{n}" for n in range(100)),
            human_questions=(HumanQuestion(id="q", prompt=largest(letter, "question")),),
        )
    assert tree.state.is_paused
    assert len(tree.state.model_dump_json().encode()) < 0.4 * BLOB
    commands = tree.resume("answer", "a" * 16_000)
    [run] = [command for command in commands if isinstance(command, RunCoordinator)]
    start = TreeStart(input=tree.state.input, host="h", state=tree.state, coordinators=(run,))
    assert len(start.model_dump_json().encode()) < 0.6 * BLOB
    assert len(run.run.model_dump_json().encode()) < 0.25 * BLOB


COORDINATORS = 61
TRIED_ALWAYS = (("\U0001f600", 16, False), ("\x01", 256, True))
"""Cases that always run, since each takes seconds: the largest in bytes and in JSON; kept sets and left-out sets."""


@pytest.mark.ruling("B6", "engine:small")
@pytest.mark.parametrize(
    ("letter", "count", "asking"),
    [
        pytest.param(letter, count, asking, marks=() if (letter, count, asking) in TRIED_ALWAYS else pytest.mark.long)
        for letter, count, asking in product(("s", "\u00e9", "\x01", "\U0001f600"), (16, 256), (False, True))
    ],
)
def test_a_tree_of_coordinators_that_all_wait_with_the_largest_sets_there_are_is_one_payload(
    letter: str, count: int, asking: bool
) -> None:
    """Each was running when the pause began, and returned a set, which must not start before the pause ends."""
    agent = the_largest_agent("lead", letter)
    tree = World(tree_input(Bounds(max_delegation_width=64))).begin()
    names = [f"{n:02}".ljust(64, "x") for n in range(COORDINATORS)]
    leads = [delegation(name, agent.name, prompt="p" * 1_000, phase=largest(letter, "phase")) for name in names]
    tree.coordinator("approved", *leads, delegation("who", agent.name, "ask"), agents=(agent,))
    question = (HumanQuestion(id="q", prompt=largest(letter, "question")),)
    tree.leg("who", human_questions=question)
    for name in names:
        result = the_largest_set(agent, letter, count)
        asks = {"human_questions": question} if asking else {}
        tree.leg(name, "approved", **result, **asks, findings=letter * 4_000)
    assert tree.state.is_paused
    held = [chain for chain in tree.state.coordinators.values() if chain.held is not None]
    assert len(held) == COORDINATORS
    assert sum(bool(chain.left_out) for chain in held) == tree.kinds().count("delegation_dropped") > 0
    kept = [chain for chain in held if chain.held is not None and chain.held.delegations]
    assert bool(kept) is (count == 16), "what is of the usual width fits, as long as there is room"
    check_size(tree, [])
    commands: list[Command] = []
    for waiting in tree.open():
        commands += tree.resume("answer", "a" * 1_000, job_id=waiting.coordinator_id)
    check_size(tree, commands)


def check_size(tree: World, commands: list[Command]) -> None:
    """Check the size of the input for continuing as new."""
    coordinators = tuple(each for each in commands if isinstance(each, RunCoordinator))
    children = tuple(each for each in commands if isinstance(each, RunChild))
    start = TreeStart(input=tree.state.input, host="h", state=tree.state, coordinators=coordinators, children=children)
    assert len(start.model_dump_json().encode()) < 0.9 * BLOB


@pytest.mark.ruling("engine:total")
def test_time_never_runs_backwards() -> None:
    tree = World(tree_input()).begin()
    before = tree.now
    tree.feed(KillRequested(now=before - 500, actor="ann", immediate=False))
    assert tree.now == before
