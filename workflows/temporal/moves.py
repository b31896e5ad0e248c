"""The attempts that a workflow has on hosts, and the orders to give them up (ruling Q5)."""

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

from temporalio import workflow
from temporalio.workflow import ActivityHandle

with workflow.unsafe.imports_passed_through():
    from workflows.temporal.messages import Move

T = TypeVar("T")
Key = tuple[str, int]


@dataclass
class Moves:
    """The waits for attempts, by job and attempt. An order for an attempt that is not waited for is ignored."""

    _waits: dict[Key, tuple[str, "asyncio.Future[object]"]] = field(default_factory=dict)
    _orders: dict[Key, Move] = field(default_factory=dict)

    def order(self, move: Move) -> None:
        """Interrupt the wait for an attempt at this host."""
        key = (move.job_id, move.attempt)
        host, waiting = self._waits.get(key, ("", None))
        if waiting is not None and host == move.host and not waiting.done():
            self._orders[key] = move
            waiting.cancel()

    async def result(self, work: ActivityHandle[T], key: Key, host: str) -> T | Move:
        """Wait for an activity at a host. Return its result, or the order to give it up, which leaves it running."""
        waiting: asyncio.Future[T] = asyncio.shield(work)
        self._waits[key] = (host, waiting)  # type: ignore[assignment]
        try:
            return await waiting
        except asyncio.CancelledError:
            move, task = self._orders.pop(key, None), asyncio.current_task()
            if move is None or (task is not None and task.cancelling()):
                raise
            return await work if work.done() else move
        finally:
            self._waits.pop(key, None)
