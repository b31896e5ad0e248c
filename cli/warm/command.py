"""One command in a process that was forked for it: it takes over the client's context, runs, and sends back its exit
code.

Only people's commands run here (ruling N5; the checks: `README.md`). So whatever a command starts counts as started by
a person, although its parent processes don't show that.
"""

import contextlib
import fcntl
import io
import os
import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass
from typing import NoReturn

from activities.git import remotes
from activities.redaction import known_values
from activities.redaction.redact import learn
from activities.runtimes.known_runtimes import PROGRAMS
from activities.settings.home import Home
from activities.settings.load import load_settings
from cli.drawing import output
from cli.invocation import calling
from cli.invocation.exit_codes import INTERRUPTED
from cli.main import run_to_code
from cli.warm.client import GO, READY, peer_of
from cli.warm.order import (
    FILES,
    MARK,
    READ_AT_START,
    TAKEN,
    TAKEN_PREFIXES,
    Order,
    Stream,
    read_at_start,
    stamp,
)
from cli.warm.peer import Peer
from workflows.model.errors import RefusedError, ServiceError

PATIENCE = 10.0
"""Seconds a caller may take to send the order."""
_pages: list[int] = []
"""The file with the text that the client pages at the end, if any."""
_PASSED = frozenset((*TAKEN, *remotes.PASSED, *(name for program in PROGRAMS.values() for name in program.passes)))
_RESET = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True)
class WarmServer:
    """How the warm process, which forks for each command, was started."""

    pid: int
    stamp: str
    begun_with: dict[bytes, bytes]
    key: int
    """The open key file, which callers show."""


def carry_out(line: socket.socket, server: WarmServer) -> NoReturn:
    """Run the command of one connection. Never returns: this process is the command's."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        line.settimeout(PATIENCE)
        peer = _admit(line)
        line.sendall(b"%d\n" % os.getpid())
        output.pages_elsewhere(_keep)
        order, files = _read(line, server.key)
        if MARK.encode() in order.environment:
            raise RefusedError("it carries the mark of a run")
        if order.stamp != server.stamp or read_at_start(order.environment) != server.begun_with:
            _restart_if_outdated(server)
            os._exit(0)
        if not peer.lives:
            os._exit(0)
        _become(order, files)
        line.sendall(f"{READY}\n".encode())
        if line.recv(1) != GO:
            os._exit(0)
        _end_with(line)
    except KeyboardInterrupt:
        _leave(line, INTERRUPTED)
    except RefusedError as refused:
        output.tell(f"process {peer_of(line)[0]} was refused: {refused.message}")
        os._exit(0)
    except Exception:
        os._exit(0)  # nothing was begun, and the client runs the command itself
    _leave(line, run_to_code())


def _admit(line: socket.socket) -> Peer:
    """Refuse agents before reading anything of theirs: a descriptor in this process would count as a person's."""
    peer = Peer.of(line)
    calling.handed_over_by(peer)
    calling.refuse_agents("the process that runs people's commands (commands.sock)", "type it: service ...")
    if not peer.is_here:
        raise RefusedError("it belongs to another user, or is in another container")
    return peer


def shows(shown: int, key: int) -> bool:
    """Return whether the descriptor is the key, open for reading.

    Being able to open the key file is the proof: there is no secret that could be copied from a backup or passed on.
    The descriptor must be readable, since a box does not stop a process from opening a file with `O_PATH`, or for
    neither reading nor writing.
    """
    if not os.path.samestat(os.fstat(shown), os.fstat(key)):
        return False
    try:
        os.pread(shown, 1, 0)
    except OSError:
        return False
    return True


def _read(line: socket.socket, key: int) -> tuple[Order, list[int]]:
    """Read the order, the streams and the folder of a caller that shows the key."""
    head, files, _, _ = socket.recv_fds(line, 8, FILES)
    if len(files) != FILES or not shows(files[-1], key):
        raise RefusedError("it did not prove that it may read the home")
    os.close(files.pop())
    size, data = struct.unpack("Q", head)[0], b""
    while len(data) < size:
        more = line.recv(min(65536, size - len(data)))
        if not more:
            raise ValueError("the request was cut off")
        data += more
    return Order.decode(data), files


def _restart_if_outdated(server: WarmServer) -> None:
    """Signal the forking process to restart if the installation has changed since its imports."""
    if stamp() != server.stamp and os.getppid() == server.pid:
        os.kill(server.pid, signal.SIGHUP)


def _become(order: Order, files: list[int]) -> None:
    """Take over everything the client was started with, except its parent and session."""
    os.setsid()  # survives a stop of the daemon, and is signalled with its children
    *streams, folder = files
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    os.fchdir(folder)
    os.close(folder)
    os.umask(order.umask)
    _take_over({os.fsdecode(name): os.fsdecode(value) for name, value in order.environment.items()})
    time.tzset()
    _open_streams(order.streams)
    for number in _RESET:
        usual = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in order.ignored else usual)
    sys.argv = order.words


def _take_over(environment: dict[str, str]) -> None:
    """Take over the listed variables and those the settings name. Secrets in all other variables are also redacted from
    texts.
    """
    os.environ.clear()
    listed = (*TAKEN_PREFIXES, *READ_AT_START)
    os.environ.update({name: environment[name] for name in environment if name in _PASSED or name.startswith(listed)})
    learn(known_values.of_environment(environment))
    with contextlib.suppress(ServiceError):  # the command itself reports the error
        named = load_settings(Home.locate(), environment).variables
        os.environ.update({name: environment[name] for name in named if name in environment})


def _open_streams(wanted: list[Stream]) -> None:
    """Open the standard streams as Python does at its start."""
    streams = [
        io.TextIOWrapper(
            open(number, mode, buffering=0 if through and number else -1, closefd=False),  # noqa: SIM115
            encoding="utf-8",
            errors=error,
            newline="\n",
            line_buffering=line,
            write_through=through,
        )
        for number, (mode, (error, line, through)) in enumerate(zip(("rb", "wb", "wb"), wanted, strict=True))
    ]
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc]


def _end_with(line: socket.socket) -> None:
    """Have the kernel kill this process when the client is gone. The client sends nothing more, so only its end is
    signalled.
    """
    line.setblocking(False)
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    with contextlib.suppress(BlockingIOError):
        if not line.recv(1, socket.MSG_PEEK):
            os._exit(0)  # the client ended before the signal was set up


def _leave(line: socket.socket, code: int) -> NoReturn:
    """Send the exit code, and leave by `os._exit`, as `service` does: Temporal's threads can crash an orderly exit."""
    with contextlib.suppress(OSError):
        socket.send_fds(line, [b"%d\n" % code], _pages)
    os._exit(code)


def _keep(text: str) -> None:
    """Collect text for the client's pager. The client pages it, since it has the terminal."""
    if not _pages:
        _pages.append(os.memfd_create("pages"))
    os.write(_pages[0], text.encode("utf-8", "backslashreplace"))
