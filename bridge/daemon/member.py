"""A member of the daemon, that is one process: it dies with its parent, is awaited until ready, and stops with
everything it started.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from activities.runs import os_processes
from activities.runs.service_process import watch_task
from activities.runs.signs_of_life import LOOKS, SignsOfLife
from bridge.daemon import die_with_parent
from bridge.daemon.logs import excerpt, log_end, open_log
from workflows.model.errors import ServiceError


class MemberFailedError(ServiceError):
    """A member failed to start."""

    code = "member_failed"


@dataclass(frozen=True)
class MemberProgram:
    """A program to run, and how to check that it works."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The whole environment, not an addition to the daemon's."""
    ready: Callable[[int], Awaitable[None]]
    """Takes the pid, and returns once the member works."""
    log: Path
    cwd: Path
    explain: Callable[[str], ServiceError | None] = lambda _: None
    """Returns the cause of a failed start, if the output shows it."""
    beat: Callable[[], Awaitable[object]] | None = None
    """Returns a value that changes with each sign of life; None if the member has no such check."""
    patience: float = 60.0
    """Seconds without a beat, or while starting without progress, after which the member counts as frozen."""
    grace: float = 10.0
    """Seconds between SIGTERM and SIGKILL."""
    inherit: tuple[int, ...] = ()
    """File descriptors to inherit."""
    umask: int = -1
    """The umask for its files; -1 keeps the daemon's."""
    works_with: str = ""
    """The name of another member whose restart requires this one to reconnect or restart."""
    rejoins: Callable[[int], Awaitable[None]] | None = None
    """Takes the pid, and returns once this member works with the restarted member `works_with`."""


class MemberProcess:
    """The process of a started member."""

    def __init__(self, member: MemberProgram, process: asyncio.subprocess.Process, log_start: int) -> None:
        self.member = member
        self.pid = process.pid
        self._process = process
        self._log_start = log_start
        self.is_frozen = False
        """True if the member was killed because it gave no sign of life."""

    @classmethod
    async def launch(cls, member: MemberProgram) -> "MemberProcess":
        """Start the member in its own session, so that a Ctrl-C reaches only the daemon, which stops its members in
        order.
        """
        with open_log(member.log) as log:
            start = os.fstat(log.fileno()).st_size  # before anything is printed
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *member.argv),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(member.env),
                cwd=member.cwd,
                start_new_session=True,
                pass_fds=member.inherit,
                umask=member.umask,
            )
            return cls(member, process, start)

    async def ready(self) -> None:
        """Return when the member works; raise if it ends first, makes no progress, or reports an error."""
        working = asyncio.ensure_future(self.member.ready(self.pid))
        ending = asyncio.ensure_future(self._process.wait())
        stalling = asyncio.ensure_future(self._until_missing(self._progress))
        try:
            await asyncio.wait({working, ending, stalling}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return await working
            if not ending.done():
                raise self._failure(f"was not ready, and has done nothing for {self.member.patience:g} s")
            raise self._failure(f"ended ({self.ending()}) before it was ready")
        finally:
            stalling.cancel()
            working.cancel()
            ending.cancel()

    async def wait_for_end(self) -> str:
        """Wait for the member's end, kill the rest of its session, and return how it ended. A frozen member is
        killed.
        """
        watching = watch_task(asyncio.create_task(self._end_if_frozen()), ends=False)
        try:
            await self._process.wait()
        finally:
            watching.cancel()
        self.kill()
        return f"gave no sign of life for {self.member.patience:g} s" if self.is_frozen else f"ended ({self.ending()})"

    async def _end_if_frozen(self) -> None:
        if self.member.beat is not None:
            await self._until_missing(self.member.beat)
            self.is_frozen = True
            self.kill()

    async def _until_missing(self, sign: Callable[[], Awaitable[object]]) -> None:
        """Return once `sign` has returned no new value for the member's `patience`."""
        signs, clock = SignsOfLife(self.pid), asyncio.get_running_loop().time
        began = clock()
        while not await asyncio.to_thread(signs.are_missing, await sign()):
            await asyncio.sleep(self.member.patience / LOOKS - (clock() - began))  # a frozen server is asked for long
            began = clock()

    async def _progress(self) -> object:
        """Return figures that grow while the member starts: seconds of processor time, and bytes in its log."""
        used, _ = os_processes.effort(self.pid) or (0.0, False)
        with contextlib.suppress(OSError):
            return int(used), self.member.log.stat().st_size
        return int(used)

    def kill(self) -> None:
        """Kill the member and the rest of its session at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Terminate the member, kill it after its grace period, and kill the rest of its session."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), self.member.grace)
        self.kill()
        await self._process.wait()

    def ending(self) -> str:
        """Describe how the member ended, for people."""
        code = self._process.returncode
        if code is None:
            return "still running"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"status {code}"

    def _failure(self, how: str) -> ServiceError:
        printed = log_end(self.member.log, self._log_start)
        if known := self.member.explain(printed):
            return known
        message = f"the {self.member.name} {how}{excerpt(printed)}"
        return MemberFailedError(message, f"less {self.member.log}")


async def until(condition: Callable[[], bool], pause: float = 0.05) -> None:
    """Poll until the condition is true. It depends on another process, so there is no event to wait for."""
    while not await asyncio.to_thread(condition):  # noqa: ASYNC110
        await asyncio.sleep(pause)
