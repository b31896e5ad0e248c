"""Evictions: no task of a workflow outlives one, wherever it waits, and a worker knows of those that failed.

A task that remains holds the run's slot until its worker ends, and the tree stands still.
"""

import ast
import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio import workflow
from temporalio.bridge.proto.workflow_activation import RemoveFromCache, WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker._workflow_instance import _WorkflowInstanceImpl

from activities.workflow_steps import STEP_LIMIT, patient, unevictable
from tests.temporal import golden
from tests.temporal.server import replayer
from tests.waiting import until
from workflows.temporal import event_loop
from workflows.temporal.event_loop import end_on_eviction

SHELL = sorted(Path(event_loop.__file__).parent.glob("*.py"))
GUARD = end_on_eviction.__name__
CATCH_CANCELLED = {"CancelledError", "BaseException"}
HISTORIES = sorted(golden.FOLDER.glob("*/*.json"))

pytestmark = pytest.mark.ruling("engine:restores")


class Evicting(UnsandboxedWorkflowRunner):
    """A runner that evicts a second instance of the workflow after each of its steps."""

    def __init__(self, lose: str = "") -> None:
        self.lose = lose
        """The name of a coroutine whose wake-ups are lost before the eviction."""
        self.evictions = 0
        self.remained: list[str] = []

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        whole, steps, loop = super().create_instance(det), list[WorkflowActivation](), asyncio.get_running_loop()
        activate = whole.activate

        def evict() -> None:
            asyncio._set_running_loop(loop)
            begun = super(Evicting, self).create_instance(det)
            for step in steps:
                begun.activate(_copied(step))
            if self.lose:
                _lose_wake_ups(begun, self.lose)
            last = WorkflowActivation(run_id=det.info.run_id)
            last.jobs.add(remove_from_cache=RemoveFromCache())
            self.evictions += 1
            try:
                begun.activate(last)
            except RuntimeError as error:
                self.remained.append(f"step {len(steps)}: {error}")

        def also_evict(act: WorkflowActivation) -> WorkflowActivationCompletion:
            steps.append(_copied(act))
            completion = activate(act)
            if not any(job.HasField("remove_from_cache") for job in act.jobs):
                evict()
            return completion

        whole.activate = also_evict  # type: ignore[method-assign]
        return whole


def _copied(act: WorkflowActivation) -> WorkflowActivation:
    copied = WorkflowActivation()
    copied.CopyFrom(act)
    return copied


def _lose_wake_ups(instance: WorkflowInstance, coroutine: str) -> None:
    assert isinstance(instance, _WorkflowInstanceImpl)
    for task in instance._tasks:
        if coroutine in repr(task.get_coro()):
            task._fut_waiter.cancel()  # type: ignore[attr-defined]
            instance._ready.clear()


async def evicted(path: Path, lose: str = "") -> Evicting:
    """Replay a history, and evict it after each step."""
    runner = Evicting(lose)
    result = await replayer(by=runner).replay_workflow(
        WorkflowHistory.from_json(path.stem, path.read_text()), raise_on_replay_failure=False
    )
    assert result.replay_failure is None, f"{path.name}: {result.replay_failure}"
    assert runner.evictions
    return runner


async def test_no_task_outlives_an_eviction_after_any_step_of_any_golden_history() -> None:
    remained = [f"{path.name}: {what}" for path in HISTORIES for what in (await evicted(path)).remained]
    assert remained == []


async def test_what_is_left_of_an_interrupted_step_holds_up_no_other_task() -> None:
    """The SDK interrupts the thread of a step that takes too long, and so can lose a wake-up: that task never ends."""
    runner = await evicted(golden.FOLDER / "0.2.0" / "fan_out-0.json", lose="Child._live")
    assert any("Child._live" in what for what in runner.remained)
    assert not [what for what in runner.remained if "DelegationTree._delegate" in what]


def faults(tree: ast.AST) -> Iterator[str]:
    """Yield the places where a cancelled coroutine could go on to wait for something."""
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(type=caught, body=body) if _can_catch_a_cancellation(caught):
                if ast.unparse(body[0]) != f"{GUARD}()":
                    yield f"line {node.lineno}: a handler of a cancellation calls {GUARD} first"
            case ast.Call(func=ast.Name(id="suppress"), args=args) if any(map(_can_catch_a_cancellation, args)):
                yield f"line {node.lineno}: a cancellation is suppressed"
            case ast.Try(finalbody=body) if any(isinstance(inner, ast.Await) for inner in _within(body)):
                yield f"line {node.lineno}: a `finally` waits"
            case ast.AsyncWith() | ast.AsyncFor():
                yield f"line {node.lineno}: its end could wait"
            case _:
                pass


def _can_catch_a_cancellation(caught: ast.expr | None) -> bool:
    names = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(caught or ast.Name("BaseException"))}
    return bool(CATCH_CANCELLED & names)


def _within(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    return (inner for statement in body for inner in ast.walk(statement))


@pytest.mark.parametrize("path", SHELL, ids=lambda path: path.stem)
def test_a_cancelled_coroutine_of_a_workflow_waits_for_nothing_more(path: Path) -> None:
    assert list(faults(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "code",
    [
        "try:\n await a\nexcept asyncio.CancelledError:\n await b",
        "try:\n await a\nexcept (OSError, CancelledError):\n pass\nawait b",
        "try:\n await a\nexcept BaseException:\n pass",
        "try:\n await a\nexcept:\n pass",
        "with suppress(OSError, asyncio.CancelledError):\n await a",
        "try:\n await a\nfinally:\n await b",
        "async with a:\n pass",
    ],
)
def test_the_check_finds(code: str) -> None:
    body = "\n".join(f" {line}" for line in code.splitlines())
    assert len(list(faults(ast.parse(f"async def f():\n{body}")))) == 1


@workflow.defn(sandboxed=False)
class Stubborn:
    """Waits on after an eviction, until it may end."""

    may_end = False

    @workflow.run
    async def run(self) -> None:
        while not Stubborn.may_end:
            with suppress(asyncio.CancelledError):
                await asyncio.Future()


async def test_a_worker_counts_the_workflows_that_it_cannot_evict(client: Client) -> None:
    queue = uuid4().hex
    worker = Worker(client, task_queue=queue, workflows=[Stubborn], max_cached_workflows=1)
    try:
        async with worker:
            assert unevictable(worker) == 0
            for _ in range(2):
                await client.start_workflow(Stubborn.run, id=f"stubborn-{uuid4().hex}", task_queue=queue)
            await until(lambda: unevictable(worker))
            Stubborn.may_end = True
            await until(lambda: not unevictable(worker))
    finally:
        Stubborn.may_end = True


async def test_a_step_may_take_minutes(client: Client) -> None:
    worker = patient(Worker(client, task_queue=uuid4().hex, workflows=[Stubborn]))
    assert worker._workflow_worker is not None
    assert worker._workflow_worker._deadlock_timeout_seconds == STEP_LIMIT
