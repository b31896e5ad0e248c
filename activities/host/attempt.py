"""The steps that all attempts share, of a job's agent or of a pipeline's command: from the offer to the recorded end.

Each attempt has one call at a time. A recorded end is returned; a running program is attached to; anything else waits
for its slot, is claimed, prepared or refused, and played. `Work` has the parts that differ for jobs and stages.
"""

import asyncio
import contextlib
from datetime import timedelta
from pathlib import Path
from typing import Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.host.context import Context
from activities.host.heartbeat import Heartbeat, beating
from activities.host.slots import Need, Slots, in_turn
from activities.runs import run_folders
from activities.runs.supervised_run import Claim, give_up
from activities.store import attempts, permanent_errors
from activities.store.attempts import AttemptRow, Offered
from workflows.model.errors import ServiceError

DESCRIBE_TIMEOUT = timedelta(seconds=5)
T = TypeVar("T")


class Attempt(Protocol[T]):
    """An attempt that has begun."""

    finishing: bool
    """True once its program has ended, and only its end is left to record."""

    def start(self) -> None:
        """Begin the program; may block on the disk and the store. Errors are raised later, by `play`."""
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


class Work(Protocol[T]):
    """The work of an attempt. Every method except the properties may block on the disk and the store."""

    @property
    def offered(self) -> Offered: ...
    @property
    def need(self) -> Need: ...

    def recorded(self, row: AttemptRow) -> T | None:
        """Return the recorded end of the attempt; None if it has not ended."""
        ...

    def run_dir(self, row: AttemptRow) -> Path:
        """Return the folder of the attempt's program, whether or not the program was started."""
        ...

    def taken_back(self) -> T:
        """Return the result of an attempt that never began."""
        ...

    def prepare(self, row: AttemptRow, beat: Heartbeat) -> Attempt[T]:
        """Prepare the attempt for `play`. Raise ServiceError with the reason if it can't start."""
        ...

    def refuse(self, row: AttemptRow, fault: ServiceError) -> T:
        """Record that the attempt can't be started on its host, with the command to type; this ends the attempt."""
        ...


class _Over(Generic[T]):
    """An attempt that ended as it began."""

    finishing = True

    def __init__(self, end: T) -> None:
        self._end = end

    def start(self) -> None:
        """No-op."""

    async def play(self) -> T:
        return self._end

    async def stop(self) -> None:
        """No-op."""

    def called_off(self, ended: T) -> T:
        return ended


class Attempts:
    """Runner of all attempts of one kind on this host."""

    def __init__(self, context: Context, slots: Slots) -> None:
        self._context = context
        self._slots = slots
        self._locks: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()
        """A lock per attempt: a call that lost its server must end before the next one goes on."""

    async def attempt(self, work: Work[T]) -> T:
        """Start an attempt, or attach to it if it is running; return an end that is recorded already unchanged."""
        beat, offered = Heartbeat(), work.offered
        lock = self._locks.setdefault(offered.key, asyncio.Lock())
        async with lock, beating(beat):
            with permanent_errors.translated():
                return await self._attempt(work, beat)

    async def _attempt(self, work: Work[T], beat: Heartbeat) -> T:
        runs_already = False
        if not self._slots.free(work.need):  # a living run is attached to, however many there are
            row = await in_turn(self._found, work)
            if row and (recorded := await in_turn(work.recorded, row)):
                return recorded
            runs_already = row is not None and Claim.read(await in_turn(work.run_dir, row)) is not None
        async with self._slots.taken(work.need, runs_already=runs_already):
            beat.begun()
            with self._context.stops.heeded(work.offered.key) as ordered:
                return await self._from_begin_to_end(work, beat, ordered)

    async def _from_begin_to_end(self, work: Work[T], beat: Heartbeat, ordered: asyncio.Event) -> T:
        """Begin the attempt and play it. A stop order that arrives in between waits until there is an attempt to
        stop.
        """
        beginning = asyncio.create_task(in_turn(self._begin, work, beat))
        try:
            attempt = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            attempt = await beginning
            if await still_wanted():
                raise
            await attempt.stop()
        return await to_its_end(attempt, ordered)

    def _found(self, work: Work[T]) -> AttemptRow | None:
        return attempts.get(self._context.store, *work.offered.key)

    def _begin(self, work: Work[T], beat: Heartbeat) -> Attempt[T]:
        """Claim the attempt first: an offer that was taken back leaves no trace (ruling B5)."""
        found = self._found(work)
        if found and (recorded := work.recorded(found)):
            return _Over(recorded)
        row = self._opened(work.offered, found)
        if row is None:
            return _Over(work.taken_back())
        try:
            attempt = work.prepare(row, beat)
        except ServiceError as fault:
            return _Over(work.refuse(row, fault))
        attempt.start()
        return attempt

    def _opened(self, offered: Offered, found: AttemptRow | None) -> AttemptRow | None:
        """Return the attempt's row, with a folder made before it (ruling N4).

        A missing folder is made again if nothing can have begun in it.
        """
        run_dir = Path(found.run_dir) if found else run_folders.new(self._context.home.runs, *offered.key)
        row = attempts.begin(self._context.store, offered, host=self._context.host, run_dir=str(run_dir))
        if found is None and (row is None or row.run_dir != str(run_dir)):
            run_dir.rmdir()
        elif row is not None and not Path(row.run_dir).exists():
            if row.worktree is None:
                run_folders.ready(Path(row.run_dir))
            else:
                why = f"its folder {row.run_dir} is gone, so it is unknown whether it had begun"
                give_up(Path(row.run_dir), why)
        return row


async def to_its_end(attempt: Attempt[T], ordered: asyncio.Event) -> T:
    """Play the attempt. A stop order ends its program; a call that ends for other reasons leaves the program alone.

    The order is a cancellation of the call, or the event; with the event, the cancellation comes later or never.
    """
    playing, stopping = asyncio.create_task(attempt.play()), asyncio.create_task(_stopped_on(ordered, attempt))
    try:
        ended = await asyncio.shield(playing)
        return await in_turn(attempt.called_off, ended) if ordered.is_set() else ended
    except asyncio.CancelledError:
        if await still_wanted():
            if attempt.finishing:
                return await playing
            playing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await playing
            raise
        if not attempt.finishing:
            await attempt.stop()
        return await in_turn(attempt.called_off, await playing)
    finally:
        stopping.cancel()


async def _stopped_on(ordered: asyncio.Event, attempt: Attempt[T]) -> None:
    await ordered.wait()
    if not attempt.finishing:
        await attempt.stop()


async def still_wanted() -> bool:
    """Return whether the call was cancelled only because the worker stops, or because a later call has taken the run
    over.
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
    """Return this run of a workflow if it is running, else the run that a reset made of it, which calls for the job
    again; empty if there is none.
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
