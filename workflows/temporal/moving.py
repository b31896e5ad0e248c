"""The attempts that a workflow waits for, and the orders that give them up at their host (ruling Q5)."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, TypeVar

from temporalio import activity, workflow
from temporalio.workflow import ActivityHandle

from workflows.model.wire import Wire
from workflows.policy.moving import Move
from workflows.temporal.calls import LOCAL, OfferKey
from workflows.temporal.event_loop import end_on_eviction

T = TypeVar("T")


class GiveUp(Wire):
    """An offer, and the order to give its attempt up."""

    offer: OfferKey
    move: Move


class GivenUp(Wire):
    """The answer to an order to move an attempt: the outcome that the host had recorded, or one that says that the
    attempt moves (ruling Q5).

    Without an outcome, the host keeps the attempt: the host has come back, or it is drained but has begun the attempt.
    """

    outcome: dict[str, Any] | None = None


@activity.defn
def give_up(order: GiveUp) -> GivenUp:
    """Decide finally whether an attempt moves. The former host of a moved attempt can neither begin it nor record its
    end.
    """
    raise NotImplementedError


class Moved(Exception):  # noqa: N818
    """The attempt was given up, because its host is lost, drained or full."""

    def __init__(self, outcome: dict[str, Any]) -> None:
        super().__init__()
        self.outcome = outcome


@dataclass
class Moves:
    """The attempts that a workflow waits for, by job and number. Orders to move other attempts are ignored."""

    _waits: dict[tuple[str, int], tuple[str, "asyncio.Future[object]"]] = field(default_factory=dict)
    _orders: dict[tuple[str, int], Move] = field(default_factory=dict)

    def order(self, move: Move) -> None:
        """Interrupt the wait for the ordered attempt."""
        key = (move.job_id, move.attempt)
        host, waiting = self._waits.get(key, ("", None))
        if waiting is not None and host == move.host and not waiting.done():
            self._orders[key] = move
            waiting.cancel()

    async def result(self, work: ActivityHandle[T], offer: OfferKey, host: str) -> T:
        """Wait for an activity on a host, and return its result. Raise `Moved` if the attempt was given up there."""
        while isinstance(ended := await self._result_or_order(work, offer, host), Move):
            order, summary = GiveUp(offer=offer, move=ended), f"offer {offer.job_id} elsewhere: {ended.reason}"
            deciding = workflow.execute_local_activity(give_up, order, summary=summary, **LOCAL)
            decision = await asyncio.shield(deciding)
            if decision.outcome is not None:
                abandon(work)
                raise Moved(decision.outcome)
        return ended

    async def _result_or_order(self, work: ActivityHandle[T], offer: OfferKey, host: str) -> T | Move:
        """Return the result of an activity, or an order to give its attempt up; the activity then still runs."""
        key = (offer.job_id, offer.attempt)
        waiting: asyncio.Future[T] = asyncio.shield(work)
        self._waits[key] = (host, waiting)  # type: ignore[assignment]
        try:
            return await waiting
        except asyncio.CancelledError:
            end_on_eviction()
            move, task = self._orders.pop(key, None), asyncio.current_task()
            if move is None or (task is not None and task.cancelling()):
                raise
            return await work if work.done() else move
        finally:
            self._waits.pop(key, None)


def abandon(work: ActivityHandle[T]) -> None:
    """Cancel an activity without waiting for its end."""
    work.cancel()
    work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
