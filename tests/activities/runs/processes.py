"""Facts in /proc about the processes of runs, and runs that wait for a signal to end."""

import asyncio
import contextlib
import os
import socket
from pathlib import Path

import pytest

from activities.runs import spawn
from activities.runs.supervised_run import Claim, RunEnd, RunRequest, run
from tests.waiting import until

ORDINARY = (1 << 31) - 1
"""Mask of signals without the C library's own, which it ignores in spawned programs."""

STAYS = "echo >> up; while [ ! -e go ]; do sleep 0.02; done; exit 5"
PARENT = "cut -d ' ' -f 4 /proc/$PPID/stat"
"""Prints the process that has forked the supervisor."""


def supervisor_of(request: RunRequest) -> int:
    claim = Claim.read(request.run_dir)
    assert claim is not None
    assert claim.pid is not None
    return claim.pid


def stat(pid: int) -> list[str]:
    """Return the fields of a process in /proc, from its state and parent on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def parent(pid: int) -> int:
    return int(stat(pid)[1])


def zombies_of(*parents: int) -> set[int]:
    zombies = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, above, *_ = stat(int(name))
        except OSError:
            continue
        if state == "Z" and int(above) in parents:
            zombies.add(int(name))
    return zombies


def open_in(pid: int) -> dict[int, str]:
    """Return the targets of a process's descriptors, without those it closes meanwhile."""
    targets = {}
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            targets[int(path.name)] = os.readlink(path)
    return targets


async def under_way(request: RunRequest) -> "asyncio.Task[RunEnd]":
    task = asyncio.create_task(run(request))
    await until(lambda: (request.cwd / "up").exists() or task.done())
    return task


def without_fork_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a system without sockets of the fork server's kind; event loops use another kind."""
    socketpair = socket.socketpair

    def refusing(family: int | None = None, kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
        if kind == socket.SOCK_SEQPACKET:
            raise OSError("Protocol not supported")
        return socketpair(family, kind)

    spawn.current().end()
    monkeypatch.setattr(socket, "socketpair", refusing)
