"""Detection of agents' processes: every process below a supervisor is one, whatever its environment says (ruling N5).

A supervisor adopts orphans, so a double fork or a new session stays below it. Supervisors are known by facts that their
children cannot change: their command line, and the log that is their standard error. The sealed claim, with the
supervisor's pid and start time, names the job.

Linux only. Without /proc an agent is known by the mark in its environment, unless it has removed the mark.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from activities.runs.os_processes import MARK, command_line, environment_of, parent_of, pids, start_time
from activities.runs.run_folders import key_of

PROGRAMS = ("/activities/runs/supervisor.py", "/activities/runs/fork_server.py")
ISOLATED = b"-I"
LOG = "supervisor.log"
TRIES = 100
"""How often to retry a process whose ancestors keep ending. After that it counts as hidden."""


@dataclass(frozen=True)
class AgentProcess:
    """A process below a supervisor."""

    job_id: str | None = None
    """The job that the agent works for; None if no trusted source names a job."""
    home: Path | None = None
    """The service home of that job."""

    def __str__(self) -> str:
        return f"an agent of {self.job_id}" if self.job_id else "an agent of an unknown job"


class UntoldError(Exception):
    """It is unknown whether the process is an agent's: its ancestors can't be determined."""


class GoneError(UntoldError):
    """The process has ended."""


class HiddenError(UntoldError):
    """An ancestor of the process cannot be seen from here."""


class _MovedError(Exception):
    """A parent has ended while the ancestors were read."""


def agent_of(pid: int) -> AgentProcess | None:
    """Return the agent that a living process belongs to; None for people's processes. Raise `UntoldError` if
    unknown.
    """
    if not Path("/proc/self/stat").exists():
        return _without_proc(pid)
    for _ in range(TRIES):
        with suppress(_MovedError):
            return _of_line(tuple(_line(pid)))
    return AgentProcess()


def _without_proc(pid: int) -> AgentProcess | None:
    """Return the agent that the environment's mark names. Without a mark raise on Linux: a process that hides /proc can
    have removed the mark as well.
    """
    agent = _by_mark(os.environ) if pid == os.getpid() else None
    if agent is None and sys.platform == "linux":
        raise HiddenError("/proc does not show this process")
    return agent


def supervisors() -> Iterator[int]:
    """Yield every living supervisor of any home on this machine, and the fork servers."""
    for pid in pids():
        with suppress(OSError):  # it has ended by now
            if is_supervisor(pid):
                yield pid


def is_supervisor(pid: int) -> bool:
    """Return whether the process is a supervisor or fork server, by its command line, which no other process can
    change.
    """
    try:
        words = command_line(pid)
    except PermissionError:  # the service's own supervisors can be read
        return False
    return ISOLATED in words and any(os.fsdecode(word).endswith(PROGRAMS) for word in words)


def _line(pid: int) -> Iterator[int]:
    """Yield the process and its ancestors. A parent that is younger than its child has a reused pid."""
    since = start_time(pid)
    if since is None:
        raise GoneError(f"process {pid} has ended")
    while pid:
        yield pid
        above = parent_of(pid)
        if above is None:
            raise _MovedError
        begun = start_time(above) if above else 0
        if begun is None and parent_of(pid) == above:
            _require_another_account(above)
            return
        if begun is None or begun > since:
            raise _MovedError
        pid, since = above, begun


def _require_another_account(hidden: int) -> None:
    """Raise if a supervisor may be above the hidden process.

    The machine hides other accounts' processes (`hidepid`), and those of this account that forbid inspection.
    Supervisors allow it, and have this account.
    """
    try:
        os.kill(hidden, 0)
    except PermissionError:
        return
    except ProcessLookupError:
        raise _MovedError from None
    if next(supervisors(), None) is not None:
        raise HiddenError(f"/proc does not show process {hidden}")


def _of_line(line: tuple[int, ...]) -> AgentProcess | None:
    with suppress(FileNotFoundError, ProcessLookupError):
        above = [pid for pid in line if is_supervisor(pid)]
        if above:
            return next((agent for pid in above if (agent := _agent_above(pid))), AgentProcess())
        return next((marked for pid in line if (marked := _by_mark(environment_of(pid)))), None)
    raise _MovedError


def _agent_above(supervisor: int) -> AgentProcess | None:
    """Return the agent that a supervisor runs; None if it has no run, or no trusted record of one."""
    try:
        log = Path(os.readlink(f"/proc/{supervisor}/fd/2"))
    except OSError:
        return None
    key = key_of(log.parent.name)
    if log.name != LOG or key is None:
        return None
    from activities.runs.supervised_run import Claim  # slow to import, and needed for agents only

    with suppress(Exception):
        claim = Claim.read(log.parent)
        if claim is not None and claim.alive and claim.pid == supervisor:
            return AgentProcess(key[0], log.parent.parent.parent)
    return None


def _by_mark(environment: Mapping[str, str]) -> AgentProcess | None:
    """Return the agent that the environment's mark names. Processes of a dead supervisor keep the mark unless they
    removed it.
    """
    if (mark := environment.get(MARK)) is None:
        return None
    key = key_of(mark.rpartition("@")[0])
    return AgentProcess(key[0] if key else None)
