"""The event loop of both workflows around their reducer: an inbox of events, and running tasks by name."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.temporal import writes

C = TypeVar("C")
E = TypeVar("E")
T = TypeVar("T")

ORDERS_IN_TURN = "orders-in-turn"
"""A patch that histories of 0.2.0 may carry."""


class Loop(Generic[E, C]):
    """Events to reduce, and the tasks that will produce more."""

    def __init__(self, reduce: Callable[[E], list[C]]) -> None:
        self._reduce = reduce
        self.inbox: deque[E] = deque()
        self.tasks: dict[str, asyncio.Task[Any]] = {}
        self._stopped: set[str] = set()
        self._orders = 0
        self._coming: dict[str, E] = {}
        """Pending orders in order of arrival, by the names of their activities."""

    @property
    def idle(self) -> bool:
        """True if there is no event and no running task."""
        return not (self.inbox or self.tasks)

    async def live(self, carry_out: Callable[[list[C]], Awaitable[None]], over: Callable[[], bool]) -> None:
        """Reduce events in order and carry out the commands, until `over`."""
        while not over():
            await workflow.wait_condition(lambda: bool(self.inbox) or over())
            if over():  # the last task ended without an event
                return
            wanted: list[C] = []
            while self.inbox:
                wanted += self._reduce(self.inbox.popleft())
            await carry_out(wanted)

    def order(self, event: E, summary: str) -> None:
        """Queue an order from outside behind everything that has happened before it.

        Temporal delivers messages ahead of all else in a workflow task. If a task is repeated because one more message
        came, the workflow would take another course than the first time, and the rows written then would record things
        that never were. Behind an activity, every repeated task begins as it did before. Orders that arrived together
        are reduced in order of arrival, whichever of these activities ends first: the first answer wins (ruling F4).
        """
        if not self.tasks:
            self.inbox.append(event)
            return
        self._orders += 1
        key = f"order:{self._orders}"
        self._coming[key] = event
        self.spawn(key, writes.mark(summary), lambda _: self._release(key))

    def _release(self, key: str) -> None:
        """Release an order whose activity has ended, once no earlier order's activity is left."""
        if key != next(iter(self._coming)):
            workflow.deprecate_patch(ORDERS_IN_TURN)
        while (first := next(iter(self._coming), None)) and first not in self.tasks:
            self.inbox.append(self._coming.pop(first))

    def spawn(self, key: str, work: Coroutine[Any, Any, T], then: Callable[[asyncio.Task[T]], None]) -> None:
        """Start a task. `then` is called however it ends, even if it is cancelled before its first step."""

        def finish(task: asyncio.Task[T]) -> None:
            del self.tasks[key]
            self._stopped.discard(key)
            then(task)

        task = asyncio.create_task(work)
        task.add_done_callback(finish)
        self.tasks[key] = task

    def stop(self, key: str) -> None:
        """Cancel a task by name, once: its ending is not interrupted again."""
        if key in self.tasks and key not in self._stopped:
            self._stopped.add(key)
            self.tasks[key].cancel()


def end_on_eviction() -> None:
    """End this coroutine if its workflow is being evicted. Every handler of a `CancelledError` calls this first.

    Temporal's SDK evicts a workflow from the cache by cancelling its tasks. One that waits for another task then may
    never end, and holds the run's slot until the worker ends. The SDK refuses `random` during an eviction.
    """
    workflow.random()


async def shield_from_cancel(life: Coroutine[Any, Any, T], cancelled: Callable[[], None]) -> T:
    """Run a workflow's life in a task of its own, so that a cancel from outside interrupts nothing half done.

    The cancel is an order to end, not a reason to abandon what runs. Temporal delivers it at most once.
    """
    task = asyncio.create_task(life)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        end_on_eviction()
        if workflow.cancellation_reason() is None:
            raise
    cancelled()
    return await task
