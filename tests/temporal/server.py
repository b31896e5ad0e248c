"""A real Temporal server for tests, and its histories."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter, WorkflowSerializationContext
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, WorkflowRunner
from temporalio.worker._workflow import _WorkflowWorker

from activities.sealing import seal_check
from activities.sealing.converter import binding_of, sealing_converter, seals_of
from activities.sealing.seal_check import with_gate
from bridge.daemon.server import GO_MEMORY, TUNING, find_program
from tests.keys import KEY
from tests.waiting import PATIENCE
from workflows.temporal import search
from workflows.temporal.runner import WORKFLOWS, runner
from workflows.temporal.seals import UNSEALED, UnsealedError

KEYS = (
    *TUNING,
    "frontend.WorkflowTimeSkippingEnabled=true",
    # A production server delays runs that follow one another quickly.
    'history.workflowIdReuseMinimalInterval="1ms"',
)


def unhurried(made: Callable[..., None]) -> Callable[..., None]:
    """Let a step of a workflow take its time: on a busy machine one of more than 2 s is no deadlock.

    The SDK interrupts such a step. Its replay then fails, or the workflow stays in the cache and its worker never ends.
    """

    def init(self: _WorkflowWorker, **options: object) -> None:
        made(self, **options)
        self._deadlock_timeout_seconds = int(PATIENCE)

    return init


_WorkflowWorker.__init__ = unhurried(_WorkflowWorker.__init__)  # type: ignore[method-assign]

SEALED = sealing_converter(KEY)
"""The converter of every test's home."""
PLAIN = pydantic_data_converter
"""A converter without a key, also that of recorded histories."""


@asynccontextmanager
async def serve(converter: DataConverter = SEALED) -> AsyncIterator[Client]:
    """Run a server in memory, on a port of its own, able to skip time."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in GO_MEMORY.items():
            environment.setenv(name, value)
        server = await WorkflowEnvironment.start_local(
            dev_server_existing_path=str(find_program()),
            data_converter=converter,
            search_attributes=[*search.KEYWORDS, *search.NUMBERS],
            dev_server_log_level="error",
            dev_server_startup_timeout=timedelta(seconds=PATIENCE),
            dev_server_extra_args=[part for key in KEYS for part in ("--dynamic-config-value", key)],
        )
    async with server:
        yield server.client


async def histories(client: Client, queues: Sequence[str]) -> AsyncIterator[WorkflowHistory]:
    """Yield the histories of these task queues, the longest first, without those of strangers."""
    begun = [run for queue in queues async for run in client.list_workflows(f"TaskQueue = '{queue}'")]
    for run in sorted(begun, key=lambda run: run.history_length, reverse=True):
        history = await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        if not _is_foreign(client, history):
            yield history


def _is_foreign(client: Client, history: WorkflowHistory) -> bool:
    first, last = history.events[0], history.events[-1]
    if last.workflow_execution_failed_event_attributes.failure.application_failure_info.type == UNSEALED:
        return True
    place = binding_of(WorkflowSerializationContext(client.namespace, history.workflow_id))
    begun, completed = (
        first.workflow_execution_started_event_attributes.input.payloads,
        last.workflow_execution_completed_event_attributes.result.payloads,
    )
    try:
        for payload in (*begun, *completed):
            if seals := seals_of(client.data_converter):
                seals.unseal(payload, place)
    except UnsealedError:
        return True
    return False


def speaking(client: Client, converter: DataConverter = PLAIN) -> Client:
    """Return another client of this server; by default without a key."""
    return Client(**(client.config() | {"data_converter": converter}))


def runs(client: Client) -> WorkflowRunner:
    """Return the runner of a worker of this client."""
    return with_gate(runner(), client.data_converter, seal_check.ender(client))


def replayer(converter: DataConverter = PLAIN, by: WorkflowRunner | None = None) -> Replayer:
    """Return a replayer that continues histories as a worker would."""
    checked = with_gate(by or runner(), converter, lambda info, why: None)
    return Replayer(workflows=WORKFLOWS, workflow_runner=checked, data_converter=converter)
