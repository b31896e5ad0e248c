"""A job's use of the store: the job, and all others of its host, wait for each write."""

from collections import Counter
from collections.abc import Iterator

import pytest
from sqlalchemy import event
from temporalio.testing import ActivityEnvironment

from tests.activities.jobs.conftest import Stage
from workflows.contract.models import Action
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("engine:small")

APPROVED = 'print(\'{"service_result": {"decision": "approved", "summary": "fine"}}\')\n'


@pytest.fixture
def counted(stage: Stage) -> Iterator[Counter[str]]:
    """Count the writes and statements of the store."""
    seen: Counter[str] = Counter()

    def commits(*_: object) -> None:
        seen["writes"] += 1

    def executes(*_: object) -> None:
        seen["statements"] += 1

    event.listen(stage.context.store, "commit", commits)
    event.listen(stage.context.store, "before_cursor_execute", executes)
    yield seen
    event.remove(stage.context.store, "commit", commits)
    event.remove(stage.context.store, "before_cursor_execute", executes)


@pytest.mark.parametrize("action", [Action.ASK, Action.IMPLEMENT])
async def test_a_job_writes_three_times(stage: Stage, counted: Counter[str], action: Action) -> None:
    """It writes that it has begun and in which folder, where it works, and how it ended.

    Its reads include the agents that its prompt names.
    """
    outcome = await stage.play(stage.job(APPROVED, action))
    assert outcome.state is JobState.SUCCEEDED
    assert counted["writes"] == 3
    assert counted["statements"] <= 7


async def test_a_job_that_is_found_again_writes_nothing_that_is_written(stage: Stage, counted: Counter[str]) -> None:
    job: JobRun = stage.job(APPROVED)
    first = await stage.play(job)
    counted.clear()
    assert await stage.play(job) == first
    assert counted["writes"] == 0


async def test_a_job_that_is_done_at_once_tells_temporal_nothing_on_the_way(stage: Stage) -> None:
    beats: list[object] = []
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.append(details)
    outcome: JobOutcome = await environment.run(stage.jobs.run_job, stage.job(APPROVED))
    assert (outcome.state, beats) == (JobState.SUCCEEDED, [])
