"""Find, report and end processes: by identity, descent, and the mark in their environment. Standard library only.

No library: the supervisor runs isolated and can't import one. Without /proc, `identity` asks `ps`, and searches by
descent and mark return nothing.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path

MARK = "SERVICE_RUN_MARK"
"""The environment variable that marks all processes of a run."""

KILL_SECONDS = 10.0
EXECUTES_SECONDS = 0.02
"""Seconds within which a process finishes `exec`."""

READ_BYTES = 65_536


def this_process() -> int:
    """Return this process's pid in /proc; inside its own pid namespace the process may have another."""
    try:
        return int(os.readlink("/proc/self"))
    except (OSError, ValueError):
        return os.getpid()


def identity(pid: int) -> str | None:
    """Return the start time of a living process, which distinguishes it from a process with a reused pid. Return None
    if it is gone or a zombie.
    """
    try:
        state, _, start = _stat(pid)
    except FileNotFoundError:
        return _identity_without_proc(pid)
    except OSError:
        return None
    return None if state in "ZX" else f"{_boot()}.{start}"


@cache
def _boot() -> str:
    """Return the id of this boot. Start times count from the boot, so after another boot a process may have the same
    pid and start time.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, int, str]:
    """Read state, parent and start time. The command's name between them may contain blanks and parentheses."""
    fields = _read(f"/proc/{pid}/stat").decode("latin-1").rpartition(")")[2].split()
    return fields[0], int(fields[1]), fields[19]


def _read(path: str) -> bytes:
    """Read a small file in a third of the time that `Path` takes, because hundreds are read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, READ_BYTES):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _identity_without_proc(pid: int) -> str | None:
    state, _, start = _of_ps("stat=,lstart=", pid).partition(" ")
    return start.strip() if state and not state.startswith("Z") else None


def _of_ps(columns: str, pid: int) -> str:
    """Return columns of `ps` about a process; empty on systems with /proc."""
    if Path("/proc/self/stat").exists():
        return ""
    import subprocess  # not at the top: it loads `threading`, which slows each fork of a supervisor

    command = ["ps", "-o", columns, "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def pids() -> Iterator[int]:
    """Yield the pids of all processes in /proc."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def parent_of(pid: int) -> int | None:
    """Return the parent's pid, 0 for a process without one; None if the process is gone or hidden."""
    try:
        return _stat(pid)[1]
    except OSError:
        return None


def effort(pid: int) -> tuple[float, bool] | None:
    """Return the processor time of a process in seconds, and whether one of its threads waits for a processor or a
    disk. Return None if the process is gone.
    """
    try:
        used = _read(f"/proc/{pid}/stat").decode("latin-1").rpartition(")")[2].split()[11:13]
        waits = any(_state(f"{pid}/task/{thread}") in "RD" for thread in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return _effort_without_proc(pid)
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK"), waits


def _state(process: str) -> str:
    try:
        return _read(f"/proc/{process}/stat").decode("latin-1").rpartition(")")[2].split()[0]
    except OSError:  # the thread has ended
        return "X"


def _effort_without_proc(pid: int) -> tuple[float, bool] | None:
    state, _, used = _of_ps("stat=,time=", pid).partition(" ")
    seconds = 0.0
    for part in used.strip().split(":") if state else ():
        seconds = seconds * 60 + float(part)
    return (seconds, state[0] in "RDU") if state else None


def is_stopped(pid: int) -> bool:
    """Return whether a signal or a debugger has stopped the process."""
    return _state(str(pid)) in "Tt"


def start_time(pid: int) -> int | None:
    """Return the start time in ticks since the boot; None if the process is gone or hidden."""
    try:
        return int(_stat(pid)[2])
    except OSError:
        return None


def command_line(pid: int) -> list[bytes]:
    """Return the command line; empty for kernel threads and for processes that have ended."""
    return _read(f"/proc/{pid}/cmdline").split(b"\0")


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment that the process was started with; empty if it can't be read."""
    try:
        parts = os.fsdecode(_read(f"/proc/{pid}/environ")).split("\0")
    except OSError:
        return {}
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def _processes() -> Iterator[tuple[int, int]]:
    for pid in pids():
        with contextlib.suppress(OSError):  # it has ended by now
            state, parent, _ = _stat(pid)
            if state not in "ZX":
                yield pid, parent


def children(of: int) -> set[int]:
    """Return the living children of a process, adopted ones too."""
    return {pid for pid, parent in _processes() if parent == of}


def descendants(root: int) -> set[int]:
    """Return every living process below this one. Double forks and new sessions stay below a subreaper."""
    children: dict[int, list[int]] = {}
    for pid, parent in _processes():
        children.setdefault(parent, []).append(pid)
    below_root: set[int] = set()
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        below_root.update(below)
        pending.extend(below)
    return below_root


def with_mark(mark: str) -> set[int]:
    """Return every living process with this mark in its environment."""
    return {pid for pid, own in marks() if own == mark}


def marks() -> Iterator[tuple[int, str]]:
    """Yield the pid of every living process that has the run mark in its environment, and the mark. Yields nothing
    without /proc.
    """
    if not Path("/proc/self/environ").exists():
        return
    prefix = f"\0{MARK}=".encode()
    for pid in pids():
        with contextlib.suppress(OSError):  # it has ended by now, or belongs to another account
            _, has_mark, rest = (b"\0" + _read(f"/proc/{pid}/environ")).partition(prefix)  # empty for a zombie
            if has_mark:
                yield pid, os.fsdecode(rest.partition(b"\0")[0])


def kill_all(find: Callable[[], set[int]]) -> int:
    """Freeze, then kill the processes that `find` returns, until it returns none: frozen processes can't fork. Return
    how many could not be killed.

    Look twice after a kill: while a process is in `exec`, its environment, by which `find` recognises it, is empty.
    """
    give_up, sure = time.monotonic() + KILL_SECONDS, True
    frozen: set[int] = set()
    while ((alive := find()) or not sure) and time.monotonic() < give_up:
        sure, fresh = not alive, alive - frozen
        for pid in fresh or alive:
            send(pid, signal.SIGSTOP if fresh else signal.SIGKILL)
        frozen |= fresh
        if not fresh:
            time.sleep(EXECUTES_SECONDS if sure else 0.005)
    return len(alive)


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


LEFT_OVER_FILE = Path("logs", "orphans.jsonl")
"""Path in the service home."""


def left_over_line(run_dir: Path, supervisor: int | None, pids: Collection[int]) -> str:
    """Describe the remaining processes of a run on one line."""
    what = "nobody waits for it" if supervisor else "its supervisor is dead"
    return f"run {run_dir.name} goes on (processes: {len(pids)}) and {what}"


def report_left_over(path: Path, run_dir: Path, supervisor: int | None, pids: Collection[int]) -> None:
    """Append a line to the report, which `service doctor` shows."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fields = {"run_dir": str(run_dir), "supervisor": supervisor, "pids": sorted(pids)}
    line = json.dumps(fields | {"at": time.time(), "said": left_over_line(run_dir, supervisor, pids)})
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600), "a") as file:
        file.write(line + "\n")
