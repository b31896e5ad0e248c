"""A tree that was reset repeats its numbers of rows and events; the store continues them."""

import pytest
from sqlalchemy import Engine

from activities.store import event_rows, job_rows, round_rows
from tests.tree.simulator import ROOT, World, delegation, tree_input
from workflows.model.rows import EventRecord, Records
from workflows.model.states import JobState, TaskState
from workflows.tree.commands import Command, Record
from workflows.tree.details import whole

ASKS = ({"id": "q", "prompt": "which?"},)


def rows(commands: list[Command]) -> Records:
    return next(each.records for each in commands if isinstance(each, Record))


def world() -> World:
    return World(tree_input()).begin()


@pytest.mark.ruling("engine:outside.reset", "B4")
def test_rows_of_a_reset_tree_take_the_place_of_the_later_ones(store: Engine) -> None:
    first, again = world(), world()
    job_rows.write_as(store, rows(first.log), ROOT, "one")
    for commands in (first.coordinator("approved", delegation("a")), first.leg("a", human_questions=ASKS)):
        assert not job_rows.write_as(store, rows(commands), ROOT, "one").anew
    assert len(round_rows.open_rounds(store, root=ROOT)) == 1

    step = rows(again.coordinator("approved"))
    written = [job_rows.write_as(store, step, ROOT, "two") for _ in range(2)]
    assert [each.anew for each in written] == [True, True], "an activity that is called again is told the same"
    job_rows.write_as(store, whole(again.state), ROOT, "two")
    task = job_rows.task_of(store, ROOT)
    assert task is not None
    assert task.state is TaskState.DONE
    assert round_rows.open_rounds(store, root=ROOT) == [], "the pause is of the course that was given up"
    assert {job.job_id: job.state for job in job_rows.tree(store, ROOT)}[ROOT] is JobState.SUCCEEDED
    assert all(job.ended_at for job in job_rows.tree(store, ROOT))


@pytest.mark.ruling("engine:outside.reset", "B4")
def test_events_of_a_reset_tree_are_numbered_on_and_each_once(store: Engine) -> None:
    first, again = world(), world()
    job_rows.write_as(store, rows(first.log), ROOT, "one")
    job_rows.write_as(store, rows(first.coordinator("approved", human_questions=ASKS)), ROOT, "one")
    step = rows(again.coordinator("approved", human_questions=ASKS))
    shifts = {job_rows.write_as(store, step, ROOT, "two").event_shift for _ in range(2)}
    opened = [event for event in event_rows.of_tree(store, ROOT) if event.kind == "round_opened"]
    assert len(opened) == 2
    assert len(shifts) == 1
    assert {event.event_id for event in opened} == {
        f"{ROOT}-e{n}" for n in (_number(opened[0]), _number(opened[0]) + shifts.pop())
    }


@pytest.mark.ruling("engine:outside.reset", "B4")
def test_late_writes_of_a_replaced_run_are_dropped(store: Engine) -> None:
    first, again = world(), world()
    job_rows.write_as(store, rows(first.log), ROOT, "one")
    late = rows(first.coordinator("failed"))
    job_rows.write_as(store, rows(again.log), ROOT, "two")
    job_rows.write_as(store, rows(again.coordinator("approved")), ROOT, "two")
    job_rows.write_as(store, late, ROOT, "one")
    task = job_rows.task_of(store, ROOT)
    assert task is not None
    assert task.state is TaskState.DONE


@pytest.mark.ruling("engine:outside.reset")
def test_a_run_that_goes_on_where_the_last_one_stopped_writes_no_row_twice(store: Engine) -> None:
    tree = world()
    job_rows.write_as(store, rows(tree.log), ROOT, "one")
    assert job_rows.write_as(store, rows(tree.coordinator("approved")), ROOT, "two").anew is False


def _number(event: EventRecord) -> int:
    return int(event.event_id.rpartition("-e")[2])
