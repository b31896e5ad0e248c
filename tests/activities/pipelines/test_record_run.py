"""Rows of a run are written once, however often a workflow task is repeated (ruling K1)."""

import pytest
from temporalio.exceptions import ApplicationError

from activities.host.context import Context
from activities.pipelines.record_run import RunRecorder
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import pipeline_runs
from activities.store.database import open_store
from tests.pipeline.plans import an_input, shell
from workflows.pipeline.commands import Command, Record
from workflows.pipeline.events import CancelRequested, RunStarted, StageEnded
from workflows.pipeline.plan import RunInput, RunState, StageOutcome, StageState
from workflows.pipeline.records import RunRecords
from workflows.pipeline.reducer import reduce
from workflows.pipeline.state import new_run

pytestmark = pytest.mark.ruling("K1", "J4")


def written(todo: list[Command]) -> list[RunRecords]:
    return [command.records for command in todo if isinstance(command, Record)]


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
    found = pipeline_runs.get(open_store(home), start.run_id)
    assert found is not None
    assert found.record.state is RunState.CANCELLED


def test_the_same_run_started_once_more_goes_no_further(books: RunRecorder) -> None:
    start = an_input(shell("a"))
    for records in cancelled_at_once(start):
        books.record_run(records)
    again = start.model_copy(update={"created_at": start.created_at + 1})
    with pytest.raises(ApplicationError, match="is over: cancelled"):
        books.record_run(cancelled_at_once(again)[0])
