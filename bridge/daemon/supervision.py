"""A supervised group of processes: started in order, stopped in reverse order, each restarted when it dies.

This uses no service manager: systemd and the like are not on every machine, and need setup.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from activities.runs.service_process import watch_task
from bridge.daemon.member import MemberProcess, MemberProgram
from bridge.machine.daemon_state import ChildPhase, ChildState, GroupPhase
from workflows.model.errors import ServiceError

log = logging.getLogger(__name__)

Announce = Callable[[GroupPhase, tuple[ChildState, ...]], None]


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff, with a cap, before a dead member is restarted."""

    first: float = 0.1
    most: float = 30.0
    healthy_after: float = 2.0
    """The delay is `first` again for a member that was ready for this many seconds."""
    rejoins_within: float = 5.0
    """Seconds in which a member must work again with a member that was restarted; after that it is restarted too.

    The SDK waits up to 10 s before it polls a restarted server again. A new process polls at once, but takes long to
    start on a busy machine.
    """

    def delay(self, failures: int) -> float:
        """Return the delay after this many failures in a row."""
        return min(self.most, self.first * 2.0 ** min(failures - 1, 30))


class _Slot:
    """A member's place in the group, kept across its restarts."""

    def __init__(self, member: MemberProgram) -> None:
        self.member = member
        self.state = ChildState(name=member.name, log=str(member.log))
        self.process: MemberProcess | None = None
        self.ready_at = 0.0
        self.ready = asyncio.Event()


class MemberGroup:
    """Runs the daemon's members until a stop, and reports every change of state."""

    def __init__(self, members: Sequence[MemberProgram], announce: Announce, backoff: Backoff | None = None) -> None:
        self._slots = [_Slot(member) for member in members]
        self._announce = announce
        self._backoff = backoff or Backoff()
        self._phase = GroupPhase.STARTING

    async def run(self, stop: asyncio.Event) -> None:
        """Run all members until a stop. Raise if a member fails its first start. No process is left running either
        way.
        """
        serving = asyncio.create_task(self._serve())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            serving.cancel()
            stopping.cancel()
            outcome, _ = await asyncio.gather(serving, stopping, return_exceptions=True)
            await self._stop()
        if isinstance(outcome, Exception):
            raise outcome

    async def _serve(self) -> None:
        for slot in self._slots:
            await self._start(slot)
        self._phase = GroupPhase.RUNNING
        self._say()
        async with asyncio.TaskGroup() as keepers:
            for slot in self._slots:
                keepers.create_task(self._keep(slot))

    async def _start(self, slot: _Slot) -> MemberProcess:
        slot.process = await MemberProcess.launch(slot.member)
        self._change(slot, phase=ChildPhase.STARTING, pid=slot.process.pid, again_at=None)
        try:
            await slot.process.ready()
        except ServiceError:
            await slot.process.stop()
            raise
        slot.ready_at = time.monotonic()
        slot.ready.set()
        self._change(slot, phase=ChildPhase.RUNNING, note="")
        log.info("%s is ready (process %d)", slot.member.name, slot.process.pid)
        return slot.process

    async def _keep(self, slot: _Slot) -> None:
        failures = 0
        while True:
            why = await self._life(slot)
            worked = time.monotonic() - slot.ready_at if slot.ready.is_set() else 0.0
            failures = 1 if worked > self._backoff.healthy_after else failures + 1
            seconds, restarts = self._backoff.delay(failures), slot.state.restarts + 1
            note = f"{why}; starting it again in {seconds:g} s"
            log.warning("%s %s (restart %d)", slot.member.name, note, restarts)
            slot.process = None
            slot.ready.clear()
            again_at = datetime.now(UTC) + timedelta(seconds=seconds)
            self._change(slot, phase=ChildPhase.WAITING, pid=None, restarts=restarts, note=note, again_at=again_at)
            await asyncio.sleep(seconds)

    async def _life(self, slot: _Slot) -> str:
        """Start the member if it is down, wait for its end, and return how it ended."""
        try:
            process = slot.process or await self._start_again(slot)
            bringing = watch_task(asyncio.create_task(self._bring_back_those_that_work_with(slot)), ends=False)
            try:
                ending = await process.wait_for_end()
            finally:
                bringing.cancel()
            if process.is_frozen:
                slot.state = slot.state.model_copy(update={"frozen_at": datetime.now(UTC)})
            return ending
        except (ServiceError, OSError) as error:
            return str(error).splitlines()[0]

    async def _start_again(self, slot: _Slot) -> MemberProcess:
        """Start the member again, once the member that it works with is ready."""
        for other in self._slots:
            if slot.member.works_with == other.member.name:
                await other.ready.wait()
        return await self._start(slot)

    async def _bring_back_those_that_work_with(self, slot: _Slot) -> None:
        """Restart members that depend on this restarted member and do not work with it again in time."""
        if slot.state.restarts:
            mine = [other for other in self._slots if other.member.works_with == slot.member.name]
            await asyncio.gather(*(self._bring_back(other, slot.member.name) for other in mine))

    async def _bring_back(self, slot: _Slot, to: str) -> None:
        process, rejoins = slot.process, slot.member.rejoins
        if process is None or rejoins is None or not slot.ready.is_set():  # it is being started, and so will find it
            return
        try:
            async with asyncio.timeout(self._backoff.rejoins_within):
                await rejoins(process.pid)
        except TimeoutError:
            log.warning("%s does not find the %s again: it is restarted", slot.member.name, to)
            process.kill()

    async def _stop(self) -> None:
        self._phase = GroupPhase.STOPPING
        for slot in reversed(self._slots):
            if slot.process is not None:
                await slot.process.stop()
            self._change(slot, phase=ChildPhase.STOPPED, pid=None, note="", again_at=None)
            log.info("%s is stopped", slot.member.name)

    def _change(self, slot: _Slot, **changes: object) -> None:
        slot.state = slot.state.model_copy(update=changes)
        self._say()

    def _say(self) -> None:
        """Report the phase of the group and the state of all members. A running group with a member down is
        degraded.
        """
        children = tuple(slot.state for slot in self._slots)
        whole = all(child.phase is ChildPhase.RUNNING for child in children)
        running = self._phase is GroupPhase.RUNNING
        self._announce(GroupPhase.DEGRADED if running and not whole else self._phase, children)
