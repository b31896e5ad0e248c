import pytest

from tests.tree.simulator import ROOT, World, delegation, tree_input
from workflows.contract.models import Delegation
from workflows.policy.settings import Bounds
from workflows.tree.commands import Record
from workflows.tree.jobs import JobState, TaskState
from workflows.tree.moves import JOB_MOVES, TASK_MOVES, IllegalMoveError, check_job, check_task
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
