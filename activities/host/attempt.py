"""The steps shared by all attempts, of a job's agent or a pipeline's command, from the offer to the recorded end.

One activity call at a time handles an attempt. It returns a recorded end, and attaches to a running program. Otherwise
it waits for a slot, claims the attempt, prepares or refuses it, and plays it. `Attempt` has the parts that differ
between jobs and stages.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.host.context import Context
from activities.host.heartbeat import Heartbeat, beating
from activities.host.slots import SlotNeed, Slots, in_turn
from activities.runs import run_folders
from activities.runs.supervised_run import Claim, give_up, never_starts
from activities.stations.hook import reach
from activities.store import attempt_rows, claim_rows, permanent_errors
from activities.store.attempt_rows import AttemptRow, Offered
from workflows.model.errors import ServiceError

DESCRIBE_TIMEOUT = timedelta(seconds=5)
T = TypeVar("T")


class StoppedError(ServiceError):
    """The attempt was ordered to stop before its program started."""


class Attempt(Protocol[T]):
    """One attempt, with the methods that differ by kind: a job's agent, or a stage's command.

    All methods except the properties and the coroutines may block on the disk and the store.
    """

    finishing: bool
    """True once the attempt's program has ended, and only the end is left to record."""

    @property
    def offered(self) -> Offered: ...
    @property
    def need(self) -> SlotNeed: ...

    def known_outcome(self, row: AttemptRow) -> T | None:
        """Return the recorded end of the attempt; None if it has not ended."""
        ...

    def run_dir(self, row: AttemptRow) -> Path:
        """Return the folder of the attempt's program, whether or not the program was started."""
        ...

    def taken_back(self) -> T:
        """Return the result of an attempt whose offer was taken back before it began."""
        ...

    def begin(self, row: AttemptRow, beat: Heartbeat) -> None:
        """Prepare the program and start it. Raise ServiceError with the reason if it can't be prepared; an error of the
        start itself is raised by `play`.
        """
        ...

    def refuse(self, row: AttemptRow, fault: ServiceError) -> T:
        """Record that the attempt can't be started on its host, with the command to type, or is not to be started any
        more; this ends the attempt.
        """
        ...

    async def play(self) -> T:
        """Wait for the program's end, record it, and return it."""
        ...

    async def stop(self) -> None:
        """End the program; `play` then records the end as usual."""
        ...

    def called_off(self, ended: T) -> T:
        """Return the result for an attempt that was ordered to stop while its end was being recorded."""
        ...


async def run_attempt(context: Context, slots: Slots, attempt: Attempt[T]) -> T:
    """Start an attempt, or attach to it if it is running, and return its end. Return a recorded end unchanged."""
    beat = Heartbeat()
    async with slots.one_call(attempt.offered.key), beating(beat):
        with permanent_errors.refusing():
            return await _in_a_slot(context, slots, attempt, beat)


async def _in_a_slot(context: Context, slots: Slots, attempt: Attempt[T], beat: Heartbeat) -> T:
    runs_already = False
    if not slots.free(attempt.need):  # a living run is attached to, however many there are
        row = await in_turn(_row_of, context, attempt)
        if row and (over := await in_turn(_end_of, context, attempt, row)):
            return over
        runs_already = row is not None and Claim.read(await in_turn(attempt.run_dir, row)) is not None
    async with slots.taken(attempt.need, runs_already=runs_already):
        beat.begun()
        with context.stops.listen(attempt.offered.key) as ordered:
            return await _from_begin_to_end(context, attempt, beat, ordered)


async def _from_begin_to_end(context: Context, attempt: Attempt[T], beat: Heartbeat, ordered: asyncio.Event) -> T:
    """Begin the attempt and play it. A stop order that arrives before the program's start takes effect after it."""
    order = partial(asyncio.get_running_loop().call_soon_threadsafe, ordered.set)
    beginning = asyncio.create_task(in_turn(_begin, context, attempt, beat, order))
    try:
        over = await asyncio.shield(beginning)
    except asyncio.CancelledError:
        return await uninterrupted(_obey_cancel_at_begin(attempt, beginning, ordered))
    return await to_its_end(attempt, ordered) if over is None else over


async def _obey_cancel_at_begin(attempt: Attempt[T], beginning: asyncio.Task[T | None], ordered: asyncio.Event) -> T:
    over = await beginning
    if await is_still_wanted():
        raise asyncio.CancelledError
    if over is not None:
        return over
    await attempt.stop()
    return await to_its_end(attempt, ordered)


def _row_of(context: Context, attempt: Attempt[T]) -> AttemptRow | None:
    return attempt_rows.get(context.store, *attempt.offered.key)


def _begin(context: Context, attempt: Attempt[T], beat: Heartbeat, order: Callable[[], object]) -> T | None:
    """Begin the attempt; return its end if it is over already. Claim it first: an offer that was taken back leaves no
    trace (ruling B5).

    An earlier call may have died while it stopped the attempt: then `order` has it stopped now.
    """
    known = _row_of(context, attempt)
    if known and (over := _end_of(context, attempt, known)):
        return over
    if known and claim_rows.ordered_to_stop(context.store, [known.key]):
        order()
    row = _open_row(context, attempt.offered, known)
    if row is None:
        return attempt.taken_back()
    try:
        attempt.begin(row, beat)
    except ServiceError as fault:
        return attempt.refuse(row, fault)
    return None


def _end_of(context: Context, attempt: Attempt[T], row: AttemptRow) -> T | None:
    """Return the end of an attempt that is over. One that is ordered to stop before its program started is over now: it
    waits for no slot, limit or repository, and its program never starts.
    """
    if recorded := attempt.known_outcome(row):
        return recorded
    ordered = claim_rows.ordered_to_stop(context.store, [row.key])
    return (
        attempt.refuse(row, StoppedError("stopped on order"))
        if ordered and never_starts(attempt.run_dir(row))
        else None
    )


def _open_row(context: Context, offered: Offered, known: AttemptRow | None) -> AttemptRow | None:
    """Return the attempt's row, with a folder made before it (ruling N4).

    A missing folder is made again if nothing can have begun in it.
    """
    run_dir = Path(known.run_dir) if known else run_folders.new(context.home.runs, *offered.key)
    row = claim_rows.begin(context.store, offered, host=context.host, run_dir=str(run_dir))
    reach("claim written", offered.job_id)
    if known is None and (row is None or row.run_dir != str(run_dir)):
        run_dir.rmdir()
    elif row is not None and not Path(row.run_dir).exists():
        if row.worktree is None:
            run_folders.ready(Path(row.run_dir))
        else:
            why = f"its folder {row.run_dir} is gone, so it is unknown whether it had begun"
            give_up(Path(row.run_dir), why)
    return row


async def to_its_end(attempt: Attempt[T], ordered: asyncio.Event) -> T:
    """Play the attempt. A stop order ends its program; if the call ends for another reason, the program keeps running.

    The order is a cancellation of the call, or the event `ordered`. After the event, a cancellation may follow, or not.
    """
    playing, stopping = asyncio.create_task(attempt.play()), asyncio.create_task(_stopped_on(ordered, attempt))
    try:
        ended = await asyncio.shield(playing)
        return await in_turn(attempt.called_off, ended) if ordered.is_set() else ended
    except asyncio.CancelledError:
        return await uninterrupted(_obey_cancel(attempt, playing))
    finally:
        stopping.cancel()


async def _obey_cancel(attempt: Attempt[T], playing: asyncio.Task[T]) -> T:
    if await is_still_wanted():
        if attempt.finishing:
            return await playing
        playing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await playing
        raise asyncio.CancelledError
    if not attempt.finishing:
        await attempt.stop()
    return await in_turn(attempt.called_off, await playing)


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Carry out what follows a cancellation to its end, also if a second one comes: from a failed heartbeat, or a
    stopping worker. Otherwise the job would end, and its agent run on (ruling G2).
    """
    task = asyncio.create_task(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    return task.result()


async def _stopped_on(ordered: asyncio.Event, attempt: Attempt[T]) -> None:
    await ordered.wait()
    if not attempt.finishing:
        await attempt.stop()


async def is_still_wanted() -> bool:
    """Return whether the call was cancelled only because the worker stops, or because a later call has taken over the
    run.
    """
    why, info = activity.cancellation_details(), activity.info()
    if why is None:
        return False
    if why.worker_shutdown:
        return True
    try:
        run_id = await _run_that_calls(info.workflow_id or "", info.workflow_run_id or "")
    except (RPCError, RuntimeError) as error:  # the SDK raises a RuntimeError if no server answers
        gone = isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND
        return not (why.cancel_requested or gone)
    # The server's commands to workers call it a request too when a workflow was ended from outside, as by a reset.
    return bool(run_id) and not (why.cancel_requested and run_id == info.workflow_run_id)


async def _run_that_calls(workflow_id: str, run_id: str) -> str:
    """Return the id of this workflow run if it is running, else of the run that a reset made, which starts the job
    again; empty if neither runs.
    """
    while run_id:
        handle = activity.client().get_workflow_handle(workflow_id, run_id=run_id)
        described = await handle.describe(rpc_timeout=DESCRIBE_TIMEOUT)
        if described.status is WorkflowExecutionStatus.RUNNING:
            return run_id
        run_id = described.raw_description.workflow_extended_info.reset_run_id
    return ""


def with_way_out(message: str, hint: str) -> str:
    """Append the command to type to an error message."""
    return f"{message} (try: {hint})" if hint else message
