"""Whether a process is an agent's: whatever is below a supervisor is one, whatever its environment says (ruling N5).

A supervisor adopts what loses its parent, so neither a double fork nor a session of its own leads out from below it.
Supervisors are known by what their children cannot change: the command line they were started with, and the log that
is their standard error. Which job it is says the claim, with its seal, and with the supervisor's pid and start.

Linux only. Without /proc an agent is known by the mark in its environment, as far as it has not removed it.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from activities.runs.os_processes import MARK, command_line, environment_of, parent_of, pids, started
from activities.runs.run_folders import key_of

PROGRAMS = ("/activities/runs/supervisor.py", "/activities/runs/fork_server.py")
ISOLATED = b"-I"
LOG = "supervisor.log"
TRIES = 100
"""A process whose parents end one after the other is looked at again so often; then it counts as one that hides."""


@dataclass(frozen=True)
class Agent:
    """A process below a supervisor."""

    job_id: str | None = None
    """The job it works for; None where nothing that is believed tells."""
    home: Path | None = None
    """The service home of that job."""

    def __str__(self) -> str:
        return f"an agent of {self.job_id}" if self.job_id else "an agent of an unknown job"


class UntoldError(Exception):
    """Nothing tells what the process is below: it may be an agent's."""


class GoneError(UntoldError):
    """The process has ended."""


class HiddenError(UntoldError):
    """Some of what is above the process cannot be seen from here."""


class _MovedError(Exception):
    """A parent has ended during the look."""


def agent_of(pid: int) -> Agent | None:
    """Whose agent a living process is; None for people and their programs. Raise `UntoldError` where nothing tells."""
    if not Path("/proc/self/stat").exists():
        return _without_proc(pid)
    for _ in range(TRIES):
        with suppress(_MovedError):
            return _of_line(tuple(_line(pid)))
    return Agent()


def _without_proc(pid: int) -> Agent | None:
    """Only the mark tells, and on Linux only that it is an agent: who has hidden /proc can have removed it as well."""
    found = _by_mark(os.environ) if pid == os.getpid() else None
    if found is None and sys.platform == "linux":
        raise HiddenError("/proc does not show this process")
    return found


def supervisors() -> Iterator[int]:
    """Every living supervisor of any home on this machine, and what forks them."""
    for pid in pids():
        with suppress(OSError):  # it ended meanwhile
            if is_supervisor(pid):
                yield pid


def is_supervisor(pid: int) -> bool:
    """By the command line, which no other process can change."""
    try:
        words = command_line(pid)
    except PermissionError:  # a supervisor of ours can be seen
        return False
    return ISOLATED in words and any(os.fsdecode(word).endswith(PROGRAMS) for word in words)


def _line(pid: int) -> Iterator[int]:
    """The process and everything above it. A parent is older than its child, or it is another one by that number."""
    since = started(pid)
    if since is None:
        raise GoneError(f"process {pid} has ended")
    while pid:
        yield pid
        above = parent_of(pid)
        if above is None:
            raise _MovedError
        begun = started(above) if above else 0
        if begun is None and parent_of(pid) == above:
            _require_another_account(above)
            return
        if begun is None or begun > since:
            raise _MovedError
        pid, since = above, begun


def _require_another_account(hidden: int) -> None:
    """Raise if a supervisor may be above the hidden process: the machine hides processes of others (`hidepid`), and
    those of this account that do not let themselves be looked at. Supervisors do, and are of this account.
    """
    try:
        os.kill(hidden, 0)
    except PermissionError:
        return
    except ProcessLookupError:
        raise _MovedError from None
    if next(supervisors(), None) is not None:
        raise HiddenError(f"/proc does not show process {hidden}")


def _of_line(line: tuple[int, ...]) -> Agent | None:
    with suppress(FileNotFoundError, ProcessLookupError):
        above = [pid for pid in line if is_supervisor(pid)]
        if above:
            return next((told for pid in above if (told := _told(pid))), Agent())
        return next((found for pid in line if (found := _by_mark(environment_of(pid)))), None)
    raise _MovedError


def _told(supervisor: int) -> Agent | None:
    """What a supervisor's own run says; None for one that has none, and where it is not believed."""
    try:
        log = Path(os.readlink(f"/proc/{supervisor}/fd/2"))
    except OSError:
        return None
    key = key_of(log.parent.name)
    if log.name != LOG or key is None:
        return None
    from activities.runs.supervised_run import Claim  # takes its time, and only agents need it

    with suppress(Exception):
        claim = Claim.read(log.parent)
        if claim is not None and claim.alive and claim.pid == supervisor:
            return Agent(key[0], log.parent.parent.parent)
    return None


def _by_mark(environment: Mapping[str, str]) -> Agent | None:
    """What a dead supervisor has left is still marked, unless it has removed that."""
    if (mark := environment.get(MARK)) is None:
        return None
    key = key_of(mark.rpartition("@")[0])
    return Agent(key[0] if key else None)
