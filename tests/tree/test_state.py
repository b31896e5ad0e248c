import pytest

from tests.tree.simulator import ROOT, World, delegation, tree_input
from workflows.contract.models import Delegation, Ephemeral, HumanQuestion, Runtime
from workflows.contract.strings import BOUNDS, DELEGATIONS_BYTES, fitted, size
from workflows.model.settings import Bounds
from workflows.model.states import JOB_MOVES, TASK_MOVES, IllegalMoveError, JobState, TaskState, check_job, check_task
from workflows.temporal.messages import TreeStart
from workflows.tree.commands import Record, RunCoordinator
from workflows.tree.state import TreeState
from workflows.tree.step import Step

LIMIT = 256 * 1024


def wide(prompt: str = "p" * 1000) -> World:
    """Sixty-four jobs in one batch, each with everything a leg can carry."""
    tree = World(tree_input(Bounds(max_delegation_width=64))).begin()
    legs: list[Delegation] = [
        delegation(f"leg-{n:02}", prompt=prompt, synthesis_rule="verify", phase="implement", retry=1) for n in range(64)
    ]
    tree.coordinator("approved", *legs)
    return tree


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
    assert TreeState.model_validate_json(tree.state.model_dump_json()) == tree.state
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


BLOB = 2 * 1024 * 1024
"""What a server takes as one payload."""


def largest(text: str, name: str) -> str:
    """The text again and again, as far as its bound goes."""
    return fitted(name, text * BOUNDS[name].characters)


def the_largest_leg(number: int, letter: str, room: int) -> Delegation:
    """Every text at its bound, as long as the whole set has room for it."""
    worker = Ephemeral(runtime=Runtime.RUNTIME_C, role=largest(letter, "role"), model=largest(letter, "model"))
    leg = delegation(
        f"{number:02}".ljust(64, "x"),
        action="review",
        prompt="p" * 1_000,
        synthesis_rule="verify",
        phase=largest(letter, "phase"),
        effort=largest(letter, "effort"),
        worktree=f"{number:02}".ljust(200, "w"),
        retry=1,
        failure_policy="continue",
    ).model_copy(update={"agent": None, "ephemeral": worker})
    left = room - size(leg.model_dump(mode="json", exclude={"prompt"}))
    artifacts = [f"{place}".ljust(50, "a") for place in range(16)][: max(0, left // 60)]
    return leg.model_copy(update={"artifacts": tuple(artifacts)})


@pytest.mark.ruling("B6")
@pytest.mark.parametrize("letter", ["s", "\u00e9", "\n", "\x01", "\U0001f600"])
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
    assert tree.state.paused
    assert len(tree.state.model_dump_json().encode()) < 0.4 * BLOB
    commands = tree.resume("answer", "a" * 16_000)
    [run] = [command for command in commands if isinstance(command, RunCoordinator)]
    start = TreeStart(input=tree.state.input, host="h", state=tree.state, coordinators=(run,))
    assert len(start.model_dump_json().encode()) < 0.6 * BLOB
    assert len(run.run.model_dump_json().encode()) < 0.25 * BLOB
