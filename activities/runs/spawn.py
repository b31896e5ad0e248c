"""Starting the supervisor of a run: forked by the fork server, or directly where there is none.

Whatever becomes of the fork server, asking again is safe: a run is claimed once, and whoever comes second ends.
"""

import contextlib
import logging
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path

from activities.boxes.control_group import Group
from activities.runs import fork_server, supervisor
from activities.runs.regular_files import appended

log = logging.getLogger(__name__)

ISOLATED = ("-I", "-S", "-X", "utf8")
TRIES = 2
TAKEN_SECONDS = 20.0
"""A fork server that has not forked by then is given up."""


def spawn(run_dir: Path, key: bytes, *, first: bool = False) -> None:
    """Start a supervisor. Returns once it has closed its standard output: the claim is settled, or it is dead.

    `first`: it should be the first process of a namespace of its own; where that cannot be had it is as any other.
    """
    _spawned[:] = [process for process in _spawned if process.poll() is None]  # no zombies pile up
    with appended(run_dir / "supervisor.log") as file:
        if not any(_forked(run_dir, key, file.fileno(), first=first) for _ in range(TRIES)):
            directly(run_dir, key, file.fileno(), first=first)


class ForkServer:
    """The process that forks this one's supervisors. It ends when this one does."""

    def __init__(self, *, first: bool) -> None:
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)
        with theirs:
            arguments = (supervisor.FIRST,) if first else ()
            self._process = _isolated(Path(fork_server.__file__), *arguments, stdin=theirs.fileno())
        self._outside = list(_groups)
        """The groups that it is not known yet to be in."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it was ended, or died."""
        return self._process.poll() is not None

    def fork(self, run_dir: Path, key: bytes, log: int) -> bool:
        """Have a supervisor forked and wait until its claim is settled, or it is dead. False when none took the run."""
        read, write = os.pipe()
        with open(read, "rb", buffering=0) as settled:
            try:
                sent = self._send(key + os.fsencode(run_dir), (write, log))
            finally:
                os.close(write)
            return sent and _within(TAKEN_SECONDS, read) and settled.read().startswith(fork_server.TAKEN)

    def tell_if_outside(self) -> None:
        """Once it has forked it is in its control group; else whoever keeps the machine has to know."""
        groups, self._outside = self._outside, []
        for group in groups:
            if not group.holds(self.pid):
                log.warning("the fork server %d could not enter its control group: nothing bounds its agents", self.pid)

    def end(self) -> None:
        """End it; the supervisors that it has forked go on."""
        self._process.kill()
        self._process.wait()
        with self._lock:
            self._channel.close()

    def _send(self, request: bytes, descriptors: tuple[int, ...]) -> bool:
        with self._lock, contextlib.suppress(OSError):  # it is dead, or has not read for long
            socket.send_fds(self._channel, [request], descriptors)
            return True
        return False


_servers: dict[bool, ForkServer] = {}
"""By whether their supervisors are first."""
_starting = threading.Lock()
_spawned: list["subprocess.Popen[bytes]"] = []
_groups: list[Group] = []
"""The control group that agents are in, if there is one."""


def keep_within(group: Group | None) -> None:
    """What fork servers started from here on fork, and all that comes of that, is in this control group. What runs
    that nobody looked after have left of it goes.
    """
    _groups[:] = [group] if group else []
    for each in _groups:
        each.sweep()


def group_environment() -> dict[str, str]:
    """The variable that tells a program of ours to `join` the agents' control group, which is there then."""
    for group in _groups:
        group.ensure()
    return _groups[0].environment if _groups else {}


def close() -> None:
    """End the fork servers of this process, and remove the control group. Runs go on, and keep the group."""
    for server in _servers.values():
        server.end()
    _servers.clear()
    for group in _groups:
        group.remove()


def current(*, first: bool = False) -> ForkServer:
    """This process's fork server for such supervisors, a new one if it has none that lives."""
    with _starting:
        known = _servers.get(first)
        if known is not None and known.ended:
            log.warning("the fork server %d has ended; the runs go on, and a new one is started", known.pid)
            known.end()
            known = None
        _servers[first] = known or ForkServer(first=first)
        return _servers[first]


def _forked(run_dir: Path, key: bytes, log: int, *, first: bool) -> bool:
    try:
        server = current(first=first)
    except OSError:  # no fork server on this system, or no process to be had now
        return False
    if server.fork(run_dir, key, log):
        server.tell_if_outside()
        return True
    server.end()
    return False


def directly(run_dir: Path, key: bytes, log: int, *, first: bool = False) -> None:
    """As `spawn`, with a new interpreter for this run alone: some eight times the work."""
    arguments = (str(run_dir), supervisor.FIRST) if first else (str(run_dir),)
    process = _isolated(
        Path(supervisor.__file__), *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
    )
    _spawned.append(process)
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as told:
        told.write(key)
    with process.stdout as settled:
        settled.read()


def _isolated(
    program: Path, *arguments: str, stdin: int, stdout: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
) -> "subprocess.Popen[bytes]":
    """One of our programs in a session of its own, with nothing of this process's environment and descriptors."""
    return subprocess.Popen(
        [sys.executable, *ISOLATED, str(program.resolve()), *arguments],
        cwd="/",
        env=group_environment(),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def _within(seconds: float, descriptor: int) -> bool:
    """Whether there is something to read, or its end, in that time. No `select`: descriptors may be many."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
