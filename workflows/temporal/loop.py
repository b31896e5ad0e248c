"""The event loop both workflows run their reducer in: an inbox of what has happened, and what goes on, by name."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.temporal import calls

C = TypeVar("C")
E = TypeVar("E")
T = TypeVar("T")

ORDERS_IN_TURN = "orders-in-turn"
"""A tree that an earlier release ran took orders as their activities ended, and has to do so again in a replay."""


class Loop(Generic[E, C]):
    """Events to be reduced, and the tasks that will bring more."""

    def __init__(self, reduce: Callable[[E], list[C]]) -> None:
        self._reduce = reduce
        self.inbox: deque[E] = deque()
        self.tasks: dict[str, asyncio.Task[Any]] = {}
        self._stopped: set[str] = set()
        self._orders = 0
        self._coming: dict[str, E] = {}
        """Orders that have not had their turn, as they came, by the names of their activities."""

    @property
    def idle(self) -> bool:
        """Nothing has happened and nothing goes on."""
        return not (self.inbox or self.tasks)

    async def live(self, carry_out: Callable[[list[C]], Awaitable[None]], over: Callable[[], bool]) -> None:
        """Whatever happens is reduced in order, and what is wanted then is carried out, until all is over."""
        while not over():
            await workflow.wait_condition(lambda: bool(self.inbox) or over())
            if over():  # what went on last ended and brought no event
                return
            wanted: list[C] = []
            while self.inbox:
                wanted += self._reduce(self.inbox.popleft())
            await carry_out(wanted)

    def order(self, event: E, summary: str) -> None:
        """Puts an order from outside behind whatever has happened before it.

        Temporal hands messages over ahead of all else in a workflow task. When a task is done over because one more
        message came, the workflow would take another course than it did the first time, and the rows it wrote then
        would tell of what never was. Behind an activity, every task that is done over begins as it did before.
        Orders that came together have their turn as they came, whichever of these activities ends first: the first
        answer wins (ruling F4).
        """
        if not self.tasks:
            self.inbox.append(event)
            return
        self._orders += 1
        key = f"order:{self._orders}"
        self._coming[key] = event
        self.spawn(key, calls.mark(summary), lambda _: self._marked(key))

    def _marked(self, key: str) -> None:
        """An order's activity has ended. An order goes on when neither its own nor an earlier one's is left."""
        if key != next(iter(self._coming)) and not workflow.patched(ORDERS_IN_TURN):
            self.inbox.append(self._coming.pop(key))
        while (first := next(iter(self._coming), None)) and first not in self.tasks:
            self.inbox.append(self._coming.pop(first))

    def spawn(self, key: str, work: Coroutine[Any, Any, T], then: Callable[[asyncio.Task[T]], None]) -> None:
        """`then` is called however the work ends, even if it is cancelled before its first step."""

        def ended(task: asyncio.Task[T]) -> None:
            del self.tasks[key]
            self._stopped.discard(key)
            then(task)

        task = asyncio.create_task(work)
        task.add_done_callback(ended)
        self.tasks[key] = task

    def stop(self, key: str) -> None:
        """Cancels what goes on by this name, once: how it ends is not interrupted."""
        if key in self.tasks and key not in self._stopped:
            self._stopped.add(key)
            self.tasks[key].cancel()


async def unless_cancelled(life: Coroutine[Any, Any, T], cancelled: Callable[[], None]) -> T:
    """A workflow's life in a task of its own: a cancel from outside interrupts nothing that is half done.

    It is an order to end, not a reason to leave what runs alone. Temporal gives it once at most.
    """
    task = asyncio.create_task(life)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if workflow.cancellation_reason() is None:
            raise
    cancelled()
    return await task
