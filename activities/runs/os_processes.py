"""Finding and ending processes: by identity, by descent, by the mark in their environment. Standard library only.

No library: the supervisor runs isolated and sees none. Linux first: without /proc, `identity` asks `ps`, and descent
and marks find nothing.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

MARK = "SERVICE_RUN_MARK"
"""The environment variable by which everything a run started is found again."""

KILL_SECONDS = 10.0
READ_BYTES = 65_536


def this_process() -> int:
    """The number of this process as /proc knows it: in a namespace of its own, a process may have another one there."""
    try:
        return int(os.readlink("/proc/self"))
    except (OSError, ValueError):
        return os.getpid()


def is_first() -> bool:
    """Whether this process is the first of a namespace of its own, below the one that /proc tells of: so not the first
    process of a container. Then a signal to all reaches what came of this process, and nothing else.
    """
    return os.getpid() == 1 and this_process() != 1


def identity(pid: int) -> str | None:
    """When a living process began, so that a reused pid is not taken for it; None when it is gone or a zombie."""
    try:
        state, _, start = _stat(pid)
    except FileNotFoundError:
        return _identity_without_proc(pid)
    except OSError:
        return None
    return None if state in "ZX" else f"{_boot()}.{start}"


@cache
def _boot() -> str:
    """Start times count from the boot: after another one, the same pid may well have the same."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, int, str]:
    """State, parent and start time; the command's name in between may hold blanks and parentheses."""
    fields = _read(f"/proc/{pid}/stat").decode("latin-1").rpartition(")")[2].split()
    return fields[0], int(fields[1]), fields[19]


def _read(path: str) -> bytes:
    """The whole of a small file, with a third of what `Path` takes: these are read by the hundreds."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, READ_BYTES):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _identity_without_proc(pid: int) -> str | None:
    if Path("/proc/self/stat").exists():
        return None
    import subprocess  # not at the top: it loads `threading`, for which each fork of a supervisor would pay

    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    state, _, start = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip().partition(" ")
    return start.strip() if state and not state.startswith("Z") else None


def pids() -> Iterator[int]:
    """Every process, as /proc lists it."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def parent_of(pid: int) -> int | None:
    """The parent's pid, 0 for those without one; None when the process is gone, or not ours to see."""
    try:
        return _stat(pid)[1]
    except OSError:
        return None


def started(pid: int) -> int | None:
    """When it began, in ticks since the boot; None when it is gone, or not ours to see."""
    try:
        return int(_stat(pid)[2])
    except OSError:
        return None


def command_line(pid: int) -> list[bytes]:
    """The words that it was started with; none for processes of the kernel, and those that have ended."""
    return _read(f"/proc/{pid}/cmdline").split(b"\0")


def environment_of(pid: int) -> dict[str, str]:
    """What it was started with; empty where that is not ours to see."""
    try:
        parts = os.fsdecode(_read(f"/proc/{pid}/environ")).split("\0")
    except OSError:
        return {}
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def _processes() -> Iterator[tuple[int, int]]:
    for pid in pids():
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, parent, _ = _stat(pid)
            if state not in "ZX":
                yield pid, parent


def children(of: int) -> set[int]:
    """The living processes that it has started, or taken over."""
    return {pid for pid, parent in _processes() if parent == of}


def descendants(root: int) -> set[int]:
    """Every living process below this one. Double forks stay below a subreaper, and so does a new session."""
    children: dict[int, list[int]] = {}
    for pid, parent in _processes():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found.update(below)
        pending.extend(below)
    return found


def marked(mark: str) -> set[int]:
    """Every living process whose environment carries the mark."""
    return {pid for pid, found in marks() if found == mark}


def marks() -> Iterator[tuple[int, str]]:
    """Every living process that belongs to some run, with its mark. Nothing where there is no /proc."""
    if not Path("/proc/self/environ").exists():
        return
    prefix = f"\0{MARK}=".encode()
    for pid in pids():
        with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to somebody else
            _, found, rest = (b"\0" + _read(f"/proc/{pid}/environ")).partition(prefix)  # empty for a zombie
            if found:
                yield pid, os.fsdecode(rest.partition(b"\0")[0])


def kill_all(find: Callable[[], set[int]]) -> int:
    """Freeze, then kill, until nothing is found: what is frozen cannot fork. Returns how many could not be killed."""
    give_up = time.monotonic() + KILL_SECONDS
    frozen: set[int] = set()
    while (alive := find()) and time.monotonic() < give_up:
        fresh = alive - frozen
        for pid in fresh or alive:
            send(pid, signal.SIGSTOP if fresh else signal.SIGKILL)
        frozen |= fresh
        if not fresh:
            time.sleep(0.005)
    return len(alive)


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
