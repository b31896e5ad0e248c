"""One command in a process forked for it: it becomes what the order says, runs, and tells its exit code."""

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

from cli import calling, output
from cli.main import run_to_code
from cli.warm.client import GO, READY
from cli.warm.order import FILES, Order, Stream, read_at_start, stamp
from cli.warm.peer import Peer

PATIENCE = 10.0
"""Seconds that whoever hands a command over may take to say it."""
_pages: list[int] = []
"""The file of what is shown by a pager in the end, if any is."""
_RESET = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True)
class Server:
    """What the process that forks was started as."""

    pid: int
    stamp: str
    begun_with: dict[bytes, bytes]


def carry_out(line: socket.socket, server: Server) -> NoReturn:
    """Never return: this process is the command's."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        line.settimeout(PATIENCE)
        line.sendall(b"%d\n" % os.getpid())
        calling.handed_over_by(Peer.of(line))
        output.pages_elsewhere(_keep)
        order, files = _read(line)
        if order.stamp != server.stamp or read_at_start(order.environment) != server.begun_with:
            _outdated(server)
            os._exit(0)
        _become(order, files)
        line.sendall(f"{READY}\n".encode())
        if line.recv(1) != GO:
            os._exit(0)
        _end_with(line)
    except KeyboardInterrupt:
        _leave(line, 130)
    except Exception:
        os._exit(0)  # nothing was begun, and whoever typed it runs it anew
    _leave(line, run_to_code())


def _read(line: socket.socket) -> tuple[Order, list[int]]:
    head, files, _, _ = socket.recv_fds(line, 8, FILES)
    size, said = struct.unpack("Q", head)[0], b""
    if len(files) != FILES:
        raise ValueError("a command has three streams and a folder")
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
    os.environ.clear()
    os.environb.update(order.environment)
    time.tzset()
    _open_streams(order.streams)
    for number in _RESET:
        usual = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in order.ignored else usual)
    sys.argv = order.words


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
