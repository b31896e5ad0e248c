"""One command in a process forked for it: it becomes what the order says, runs, and tells its exit code.

It is forked outside every box, so it serves people alone (ruling N5). Who is below a supervisor is refused before
anything of theirs is read. Who is not has to show the key of the home, open for reading: no box lets an agent open it.
So whatever a command starts here is a person's, although nothing above it tells.
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
from activities.redaction.redacted import learn
from activities.runtimes.table import PROGRAMS
from activities.settings.home import Home
from activities.settings.load import load_settings
from cli import calling, output
from cli.main import run_to_code
from cli.permitted import SERVED
from cli.warm.client import GO, READY
from cli.warm.client import peer as other_end
from cli.warm.order import (
    FILES,
    MARK,
    READ_AT_START,
    TAKEN,
    TAKEN_PREFIXES,
    Order,
    Stream,
    for_programs,
    read_at_start,
    stamp,
)
from cli.warm.peer import Peer
from workflows.model.errors import RefusedError, ServiceError

PATIENCE = 10.0
"""Seconds that whoever hands a command over may take to say it."""
_pages: list[int] = []
"""The file of what is shown by a pager in the end, if any is."""
_PASSED = frozenset((*TAKEN, *remotes.PASSED, *(name for program in PROGRAMS.values() for name in program.passes)))
_RESET = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True)
class Server:
    """What the process that forks was started as."""

    pid: int
    stamp: str
    begun_with: dict[bytes, bytes]
    key: int
    """The file of the home that callers show, open."""


def carry_out(line: socket.socket, server: Server) -> NoReturn:
    """Never return: this process is the command's."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        line.settimeout(PATIENCE)
        peer = _admitted(line)
        line.sendall(b"%d\n" % os.getpid())
        output.pages_elsewhere(_keep)
        order, files = _read(line, server.key)
        if MARK.encode() in order.environment:
            raise RefusedError("it carries the mark of a run")
        if order.stamp != server.stamp or read_at_start(order.environment) != server.begun_with:
            _outdated(server)
            os._exit(0)
        if not _is_of_here(order) or not peer.lives:
            os._exit(0)
        _become(order, files)
        line.sendall(f"{READY}\n".encode())
        if line.recv(1) != GO:
            os._exit(0)
        _end_with(line)
    except KeyboardInterrupt:
        _leave(line, 130)
    except RefusedError as refused:
        output.tell(f"process {other_end(line)[0]} was refused: {refused.message}")
        os._exit(0)
    except Exception:
        os._exit(0)  # nothing was begun, and whoever typed it runs it anew
    _leave(line, run_to_code())


def _admitted(line: socket.socket) -> Peer:
    """Refuse agents before anything of theirs is read: a descriptor that this process had would count as a person's."""
    peer = Peer.of(line)
    calling.handed_over_by(peer)
    calling.refuse_agents("the process that runs people's commands (commands.sock)", "type it: service ...")
    if not peer.is_here:
        raise RefusedError("it belongs to another user, or is in another container")
    return peer


def shows(shown: int, key: int) -> bool:
    """Whether it is the key, and open for reading.

    The opening is the proof: there is no secret that could be read from a backup, or said by who has only heard it. It
    is read from, since a box holds nobody back from opening a file by `O_PATH`, or for neither reading nor writing.
    """
    if not os.path.samestat(os.fstat(shown), os.fstat(key)):
        return False
    try:
        os.pread(shown, 1, 0)
    except OSError:
        return False
    return True


def _read(line: socket.socket, key: int) -> tuple[Order, list[int]]:
    """The order, the streams and the folder, from a caller that shows the key."""
    head, files, _, _ = socket.recv_fds(line, 8, FILES)
    if len(files) != FILES or not shows(files[-1], key):
        raise RefusedError("it did not show that it may read the home")
    os.close(files.pop())
    size, said = struct.unpack("Q", head)[0], b""
    while len(said) < size:
        more = line.recv(min(65536, size - len(said)))
        if not more:
            raise ValueError("the order was not finished")
        said += more
    return Order.decoded(said), files


def _outdated(server: Server) -> None:
    """Tell the process that forked us to begin anew, if the installation is another than it has imported."""
    if stamp() != server.stamp and os.getppid() == server.pid:
        os.kill(server.pid, signal.SIGHUP)


def _is_of_here(order: Order) -> bool:
    """Whether programs that it starts would be found here as where it was typed. A command that looks starts none."""
    named = [word for word in order.words[1:] if not word.startswith("-")]
    looks = not named or bool(SERVED & {named[0], " ".join(named[:2])})
    return looks or for_programs(order.environment) == for_programs(os.environb)


def _become(order: Order, files: list[int]) -> None:
    """As if it had been started by who typed it: everything but its parent and its session."""
    os.setsid()  # it lives on when the daemon stops, and is signalled with what it starts
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
    """The variables of the list, and those that the settings name; programs are found as this process finds them.

    What else is secret is kept out of texts all the same.
    """
    kept = for_programs(os.environb)
    os.environ.clear()
    listed = (*TAKEN_PREFIXES, *READ_AT_START)
    os.environ.update({name: environment[name] for name in environment if name in _PASSED or name.startswith(listed)})
    learn(known_values.of_environment(environment))
    with contextlib.suppress(ServiceError):  # the command itself says what is wrong with them
        named = load_settings(Home.locate(), environment).variables
        os.environ.update({name: environment[name] for name in named if name in environment})
    for name in for_programs(os.environb):
        del os.environb[name]
    os.environb.update(kept)


def _open_streams(wanted: list[Stream]) -> None:
    """As Python opens them when it starts."""
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
    """The kernel kills this process when the one that was typed is gone: it says no more, only its end is heard."""
    line.setblocking(False)
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    with contextlib.suppress(BlockingIOError):
        if not line.recv(1, socket.MSG_PEEK):
            os._exit(0)  # it went before it could be noticed


def _leave(line: socket.socket, code: int) -> NoReturn:
    """Say how it ended, and end as `service` does: Temporal's threads can crash an orderly exit."""
    with contextlib.suppress(OSError):
        socket.send_fds(line, [b"%d\n" % code], _pages)
    os._exit(code)


def _keep(text: str) -> None:
    """What needs a pager is shown by the process that was typed: the terminal is its own, and it is told of keys."""
    if not _pages:
        _pages.append(os.memfd_create("pages"))
    os.write(_pages[0], text.encode("utf-8", "backslashreplace"))
