"""The history of a full tree: far below Temporal's warning limits."""

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from tests.temporal.books import Books
from tests.temporal.host import Host, ended, name_of, serving, start
from tests.tree.simulator import AGENTS, delegation, outcome
from workflows.contract.models import Delegation
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.settings import Bounds
from workflows.model.spend import Usage
from workflows.model.states import JobState

EVENTS = 2000
BYTES = 1024 * 1024
LEGS = 15


def batch(number: int) -> tuple[Delegation, ...]:
    prompt = "Implement the part described below, and say what you did. ".ljust(1024, "x")
    legs = [delegation(f"part-{number}-{leg}", retry=1, prompt=prompt) for leg in range(LEGS - 1)]
    return (*legs, delegation(f"check-{number}", action="review", synthesis_rule="verify", prompt=prompt))


def realistic(run: JobRun) -> JobOutcome:
    """Return an outcome with summaries, findings, files, branches and usage of realistic size."""
    generation = (run.delegation_depth if name_of(run) in {"root", "normal"} else 9) if run.delegation_id is None else 9
    more = batch(generation) if generation < 4 else ()
    return outcome(
        run,
        "approved" if run.assignment.action == "review" or run.delegation_id is None else "implemented",
        *more,
        summary="Everything asked for is in place. ".ljust(800, "s"),
        findings="- a finding in a file\n" * 40,
        branch=f"service/{run.job_id}",
        head_sha="0" * 40,
        touched_files=tuple(f"src/package/module_{n}.py" for n in range(12)),
        usage=Usage(input_tokens=20_000, output_tokens=2_000),
        result_digest="sha256:" + "a" * 64,
        progress="sha256:" + run.job_id.ljust(64, "b"),
        agents=AGENTS if more else (),
    )


@pytest.mark.ruling("spec:limits.job_budget")
@pytest.mark.long
async def test_a_full_tree_stays_far_below_the_limits_of_a_history(client: Client, queue: str) -> None:
    host = Host(realistic)
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await ended(tree)
        described = await tree.describe()
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert books.states() == {JobState.SUCCEEDED: 65}
    size = described.raw_description.workflow_execution_info.history_size_bytes
    assert described.history_length < EVENTS
    assert size < BYTES
    kinds = [EventType.Name(event.event_type) for event in (await tree.fetch_history()).events]
    assert kinds.count("EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED") == 4 * LEGS
