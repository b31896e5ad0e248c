"""Start the supervisor of a run: by the fork server, or directly if this process has no fork server.

A repeated call is safe, whatever happens to the fork server: a run is claimed once, and a second supervisor ends.
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
from activities.runs.regular_files import open_to_append

log = logging.getLogger(__name__)

ISOLATED = ("-I", "-S", "-X", "utf8")
TRIES = 2
TAKEN_SECONDS = 20.0
"""Timeout of a fork. A fork server that takes longer is not used again."""


def spawn(run_dir: Path, key: bytes) -> None:
    """Start a supervisor. Return once it has closed its standard output: the claim is settled, or the supervisor is
    dead.
    """
    _spawned[:] = [process for process in _spawned if process.poll() is None]  # collect zombies
    with open_to_append(run_dir / "supervisor.log") as file:
        if not any(_fork(run_dir, key, file.fileno()) for _ in range(TRIES)):
            directly(run_dir, key, file.fileno())


class ForkServer:
    """The process that forks this process's supervisors. It ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)
        with theirs:
            self._process = _start_isolated(Path(fork_server.__file__), stdin=theirs.fileno())
        self._outside = list(_groups)
        """Control groups that the fork server may be outside of."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def fork(self, run_dir: Path, key: bytes, log: int) -> bool:
        """Fork a supervisor, and wait until its claim is settled or it is dead. Return False if no supervisor took over
        the run.
        """
        read, write = os.pipe()
        with open(read, "rb", buffering=0) as settled:
            try:
                sent = self._send(key + os.fsencode(run_dir), (write, log))
            finally:
                os.close(write)
            return sent and _within(TAKEN_SECONDS, read) and settled.read().startswith(fork_server.TAKEN)

    def tell_if_outside(self) -> None:
        """Warn the operator if the fork server, once it has forked, is outside its control group."""
        groups, self._outside = self._outside, []
        for group in groups:
            if not group.holds(self.pid):
                log.warning("the fork server %d could not enter its control group: its agents have no limits", self.pid)

    def end(self) -> None:
        """End the fork server; the supervisors that it has forked continue."""
        self._process.kill()
        self._process.wait()
        with self._lock:
            self._channel.close()

    def _send(self, request: bytes, descriptors: tuple[int, ...]) -> bool:
        with self._lock, contextlib.suppress(OSError):  # it is dead, or does not read
            socket.send_fds(self._channel, [request], descriptors)
            return True
        return False


_server: list[ForkServer] = []
"""The fork server of this process, once it has one."""
_starting = threading.Lock()
_spawned: list["subprocess.Popen[bytes]"] = []
_groups: list[Group] = []
"""The control group of agents, if there is one."""


def keep_within(group: Group | None) -> None:
    """Put future fork servers and all their children in this control group, and remove its empty subgroups."""
    _groups[:] = [group] if group else []
    for kept in _groups:
        kept.sweep()


def group_environment() -> dict[str, str]:
    """Return the variable that passes the agents' control group to programs of the service; make the group."""
    for group in _groups:
        group.ensure()
    return _groups[0].environment if _groups else {}


def close() -> None:
    """End this process's fork server, and remove the control group. Running runs continue, and keep the group."""
    for server in _server:
        server.end()
    _server.clear()
    for group in _groups:
        group.remove()


def current() -> ForkServer:
    """Return this process's fork server, starting one if none lives."""
    with _starting:
        if _server and _server[0].ended:
            known = _server.pop()
            log.warning("the fork server %d has ended; the runs go on, and a new one is started", known.pid)
            known.end()
        if not _server:
            _server.append(ForkServer())
        return _server[0]


def _fork(run_dir: Path, key: bytes, log: int) -> bool:
    try:
        server = current()
    except OSError:  # no fork server on this system, or no free process
        return False
    if server.fork(run_dir, key, log):
        server.tell_if_outside()
        return True
    server.end()
    return False


def directly(run_dir: Path, key: bytes, log: int) -> None:
    """Start a supervisor like `spawn`, but in a new interpreter, which takes about eight times the processor time."""
    process = _start_isolated(
        Path(supervisor.__file__), str(run_dir), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
    )
    _spawned.append(process)
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as key_pipe:
        key_pipe.write(key)
    with process.stdout as settled:
        settled.read()


def _start_isolated(
    program: Path, *arguments: str, stdin: int, stdout: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
) -> "subprocess.Popen[bytes]":
    """Start a program of the service in its own session, without this process's environment and descriptors."""
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
    """Return whether the descriptor becomes readable, or ends, in that time. `select` doesn't support high descriptor
    numbers.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
