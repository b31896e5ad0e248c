"""The event loop that both workflows run around their reducer: an inbox of events, and running tasks by name."""

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.temporal import writes

C = TypeVar("C")
E = TypeVar("E")
T = TypeVar("T")

ORDERS_IN_TURN = "orders-in-turn"
"""A patch that histories of 0.2.0 may carry."""
UPDATES_KEPT_FIRST = "updates-are-kept-first"
"""A patch: trees of earlier releases reduced an update at once if nothing of them ran, and must do so in a replay."""
LATER_EVENTS_WAIT = "later-events-wait-for-orders"
"""A patch: in earlier releases, an order was reduced after all that happened until its activity had ended."""


@dataclass(frozen=True)
class Waiting(Generic[E]):
    """An order whose activity has not ended, or an event that came in a later workflow task than such an order."""

    event: E
    place: tuple[int, bool]
    """The length of the history when it came, and whether it is an order: those come last of their workflow task."""
    activity: str = ""


class Loop(Generic[E, C]):
    """An inbox of events to reduce, and the running tasks that will add further ones."""

    def __init__(self, reduce: Callable[[E], list[C]]) -> None:
        self._reduce = reduce
        self.inbox: deque[E] = deque()
        self.tasks: dict[str, asyncio.Task[Any]] = {}
        self._stopped: set[str] = set()
        self._orders = 0
        self._waiting: list[Waiting[E]] = []

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

    def order(self, event: E, summary: str, *, by_update: bool = False) -> None:
        """Queue an order from outside behind everything that has happened before it.

        Temporal delivers messages first in a workflow task. If a task were repeated because one more message came, the
        workflow could take a different course, and the rows that it had already written would be wrong. So each order
        waits for an activity of its own: then a repeated task begins as before. Orders that arrive together are reduced
        in order of arrival, whichever activity ends first: the first answer wins (ruling F4).

        If nothing runs, a signal is reduced at once. An update is not: until a task with it has ended, only the
        server's memory has it, and if that were lost, rows would tell of an order that nobody has.
        """
        if not self.tasks and not (by_update and workflow.patched(UPDATES_KEPT_FIRST)):
            self.inbox.append(event)
            return
        self._orders += 1
        key = f"order:{self._orders}"
        self._waiting.append(Waiting(event, (_history_length(), True), key))
        self.spawn(key, writes.mark(summary), lambda _: self._release(key))

    def add(self, event: E) -> None:
        """Queue an event: behind the orders that came in earlier workflow tasks, however long their activities take.

        So no part starts after a kill that was taken, and no pause expires after its answer (rulings G2, F4).
        """
        place = _history_length(), False
        if self._waiting and self._waiting[0].place < place and workflow.patched(LATER_EVENTS_WAIT):
            insort(self._waiting, Waiting(event, place), key=attrgetter("place"))
        else:
            self.inbox.append(event)

    def _release(self, key: str) -> None:
        """Release an order whose activity has ended, once the activities of all earlier orders have ended too, and the
        events that wait for it.
        """
        if key != self._waiting[0].activity:
            workflow.deprecate_patch(ORDERS_IN_TURN)
        while self._waiting and self._waiting[0].activity not in self.tasks:
            self.inbox.append(self._waiting.pop(0).event)

    def spawn(self, key: str, work: Coroutine[Any, Any, T], then: Callable[[asyncio.Task[T]], None]) -> None:
        """Start a task. `then` is called however the task ends, even if it is cancelled before its first step."""

        def finish(task: asyncio.Task[T]) -> None:
            del self.tasks[key]
            self._stopped.discard(key)
            then(task)

        task = asyncio.create_task(work)
        task.add_done_callback(finish)
        self.tasks[key] = task

    def stop(self, key: str) -> None:
        """Cancel a task by name. A second call does nothing, so that it does not interrupt the task's cleanup."""
        if key in self.tasks and key not in self._stopped:
            self._stopped.add(key)
            self.tasks[key].cancel()


def _history_length() -> int:
    return workflow.info().get_current_history_length()


def end_on_eviction() -> None:
    """End this coroutine if its workflow is being evicted. Every handler of a `CancelledError` calls this first.

    Temporal's SDK evicts a workflow from the cache by cancelling its tasks. A task that then waits for another one may
    never end, and so holds the run's slot until the worker ends. An eviction is recognised by the SDK's refusal of
    `random`.
    """
    workflow.random()


async def shield_from_cancel(life: Coroutine[Any, Any, T], cancelled: Callable[[], None]) -> T:
    """Run a workflow's main coroutine in its own task, so that a cancel from outside interrupts no step.

    A cancel is an order to end, not to abandon running steps. Temporal delivers it at most once.
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
