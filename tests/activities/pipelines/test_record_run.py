"""Rows of a run are written once, however often a workflow task is repeated (ruling K1)."""

import copy

import pytest
from temporalio.exceptions import ApplicationError

from activities.host.context import Context
from activities.pipelines.record_run import RunRecorder
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import event_rows, job_rows, run_rows, waiting_rows
from activities.store.database import open_store
from tests import rows
from tests.pipeline.plans import agent, an_input, shell
from workflows.model.rows import Records
from workflows.model.states import TaskState, WaitsFor
from workflows.pipeline.commands import Command, RecordRows
from workflows.pipeline.events import CancelRequested, RetryDue, RunStarted, StageEnded
from workflows.pipeline.plan import RunInput, RunState, StageOutcome, StageState
from workflows.pipeline.reducer import reduce
from workflows.pipeline.rows import RunRecords
from workflows.pipeline.state import new_run

pytestmark = pytest.mark.ruling("K1", "J4")


def written(todo: list[Command]) -> list[RunRecords]:
    return [command.records for command in todo if isinstance(command, RecordRows)]


def cancelled_at_once(start: RunInput) -> list[RunRecords]:
    """Return the rows of a run that is cancelled before its first task is done."""
    run, stopped = new_run(start), StageOutcome(state=StageState.CANCELLED)
    return [
        *written(reduce(run, RunStarted(now=1.0))),
        *written(reduce(run, CancelRequested(now=1.0, actor="ann"))),
        *written(reduce(run, StageEnded(1.0, "a", 1, stopped))),
    ]


@pytest.fixture
def books(home: Home) -> RunRecorder:
    return RunRecorder(Context(home, Settings(), open_store(home)))


def test_a_task_that_is_done_over_after_it_wrote_the_end_writes_the_same_again(books: RunRecorder, home: Home) -> None:
    start = an_input(shell("a"))
    for records in (*cancelled_at_once(start), *cancelled_at_once(start)):
        books.record_run(records)
    run = run_rows.get(open_store(home), start.run_id)
    assert run is not None
    assert run.record.state is RunState.CANCELLED


def test_the_same_run_started_once_more_goes_no_further(books: RunRecorder) -> None:
    start = an_input(shell("a"))
    for records in cancelled_at_once(start):
        books.record_run(records)
    again = start.model_copy(update={"created_at": start.created_at + 1})
    with pytest.raises(ApplicationError, match="is over: cancelled"):
        books.record_run(cancelled_at_once(again)[0])


@pytest.mark.ruling("J5")
def test_a_stage_names_its_job_once_it_can_be_looked_up(books: RunRecorder, home: Home) -> None:
    """The stage's row is written before its tree begins, and the tree writes the job."""
    store, run = open_store(home), new_run(an_input(agent("a"), shell("b", "a")))
    for records in written(reduce(run, RunStarted(now=1.0))):
        books.record_run(records)
    (begun, waits), root = run_rows.stages_of(store, run.input.run_id), run.stages["a"].job_id
    assert (begun.state, begun.job_id, waits.job_id) == (StageState.RUNNING, None, None)
    assert root is not None
    job_rows.write(store, Records(jobs=(rows.job(root),)))
    assert run_rows.stages_of(store, run.input.run_id)[0].job_id == root


def test_the_tree_of_an_attempt_that_another_one_follows_leaves_attention(books: RunRecorder, home: Home) -> None:
    """It was blocked, and waited for an operator; the stage has been tried again meanwhile."""
    store, run = open_store(home), new_run(an_input(agent("a", retry=1)))
    first = [*written(reduce(run, RunStarted(now=1.0)))]
    blocked = StageOutcome(state=StageState.BLOCKED, reason="leg x failed")
    first += written(reduce(run, StageEnded(2.0, "a", 1, blocked)))
    for records in first:
        books.record_run(records)
    superseded = first[0].trees[0].root_job_id
    waits = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY, "to_retry": superseded, "ended_at": 2.0}
    job_rows.write(store, Records(task=rows.task(superseded, **waits)))
    assert [each.key for each in waiting_rows.waits(store)] == [superseded]
    for _ in range(2):
        for records in written(reduce(copy.deepcopy(run), RetryDue(3.0, "a"))):
            books.record_run(records)
    assert waiting_rows.waits(store) == []
    task = job_rows.task_of(store, superseded)
    assert task is not None
    assert task.state is TaskState.CANCELLED
    assert task.reason == f"dismissed by attempt 2 of stage a of {run.input.run_id}; it was blocked: "
    assert [each.kind for each in event_rows.of_tree(store, superseded)] == ["task_dismissed"]
