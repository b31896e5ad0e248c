"""The client side of the warm process: hands the typed command to it, and waits for the command to end."""

import io
import os
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from types import FrameType

from cli.warm import own_process
from cli.warm.order import KEY, MARK, SOCKET, Order, stamp

READY = "ready"
GO = b"!"
PATIENCE = 1.0
"""Seconds within which the warm process must accept the command."""
CUT_OFF = 5
_TO_ALL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""Signals that a terminal sends to a command's whole process group."""
_TO_ONE = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
_WHY = "the command was cut off: the process that ran it has ended"
_SAID = (
    f"error: {_WHY}\ntry: see what has become of it before you type it again: service job list, service daemon status\n"
)
_SAID_IN_JSON = f'{{"error": "{_WHY}", "code": "cut_off", "hint": "service job list"}}\n'


def hand_over(words: Sequence[str]) -> int | None:
    """Run the command in the warm process, and return its exit code; None if it was not accepted and so did not
    begin.
    """
    if MARK in os.environ or own_process.is_needed(words[1:]):
        return None
    connection = _connect()
    if connection is None:
        return None
    line, key = connection
    with line:
        try:
            pid = _send_order(line, words, key)
        finally:
            os.close(key)
        return None if pid is None else _Followed(line, pid, as_json="--json" in words).to_its_end()


def _connect() -> tuple[socket.socket, int] | None:
    """Return a connection to this home's warm process and its opened key. Return None if the process belongs to another
    account or does not answer.
    """
    home = os.path.expanduser(os.environ.get("SERVICE_HOME") or "~/.service")
    line, key = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), None
    try:
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY)
        try:
            key = os.open(KEY, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
            line.settimeout(PATIENCE)
            line.connect(f"/proc/self/fd/{folder}/{SOCKET}")  # a socket's path is limited to 107 bytes
        finally:
            os.close(folder)
        if peer_of(line)[1] == os.getuid():
            return line, key
    except (OSError, ValueError):
        pass
    line.close()
    if key is not None:
        os.close(key)
    return None


def peer_of(line: socket.socket) -> tuple[int, int]:
    """Return the pid and the uid at the other end, as the kernel knows them."""
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, user, _ = struct.unpack("iii", credentials)
    return pid, user


def _send_order(line: socket.socket, words: Sequence[str], key: int) -> int | None:
    """Send the order, and return the pid that will run it after `GO`."""
    order = _order(words)
    if order is None:
        return None
    try:
        pid = _word(line)  # before sending: descriptors nobody receives would keep pipes open for their readers
        folder = os.open(".", os.O_PATH | os.O_DIRECTORY)
        try:
            socket.send_fds(line, [struct.pack("Q", len(order))], [0, 1, 2, folder, key])
        finally:
            os.close(folder)
        line.sendall(order)
        ready = _word(line) == READY
    except OSError:
        return None
    return int(pid) if ready else None


def _order(words: Sequence[str]) -> bytes | None:
    """Build the order. None if something cannot be handed over: closed streams, or streams that are not UTF-8."""
    standard = (sys.stdin, sys.stdout, sys.stderr)
    streams = [stream for stream in standard if isinstance(stream, io.TextIOWrapper)]
    if len(streams) != len(standard) or any(stream.encoding.lower() != "utf-8" for stream in streams):
        return None
    umask = os.umask(0o077)
    os.umask(umask)
    return Order(
        stamp(),
        words,
        os.environb,
        streams=[(stream.errors or "strict", stream.line_buffering, stream.write_through) for stream in streams],
        umask=umask,
        ignored=[number for number in (*_TO_ALL, *_TO_ONE) if signal.getsignal(number) is signal.SIG_IGN],
    ).encode()


def _word(line: socket.socket) -> str:
    """Read one line; empty if the other side has closed."""
    text = b""
    while not text.endswith(b"\n"):
        more = line.recv(64)
        if not more:
            return ""
        text += more
    return text.decode("ascii").strip()


class _Followed:
    """A command that runs in a fork of the warm process."""

    def __init__(self, line: socket.socket, pid: int, *, as_json: bool) -> None:
        self._line = line
        self._as_json = as_json
        self._pid = pid
        self._passed_on: int | None = None

    def to_its_end(self) -> int | None:
        """Wait for the command, and return its exit code. If a signal ended it, end this process by that signal too."""
        handlers = dict.fromkeys((*_TO_ALL, *_TO_ONE), self._pass_on) | {signal.SIGTSTP: self._suspend}
        before = {number: signal.getsignal(number) for number in handlers}
        for number, handler in handlers.items():
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, handler)
        self._line.settimeout(None)
        try:
            self._line.sendall(GO)
        except OSError:
            for number, usual in before.items():
                signal.signal(number, usual)
            return None
        try:
            answer, files, _, _ = socket.recv_fds(self._line, 64, 1)
        except OSError:
            answer, files = b"", []
        if not answer:
            return self._cut_off()
        if files:
            self._show(files[0])
        return int(answer)

    def _show(self, file: int) -> None:
        """Page the text of this file descriptor, with default signal handlers for the pager."""
        from cli.drawing import output

        for number in (*_TO_ALL, *_TO_ONE, signal.SIGTSTP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        os.lseek(file, 0, os.SEEK_SET)
        with open(file, encoding="utf-8") as pages:
            output.run_pager(pages)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number != signal.SIGWINCH:
            self._passed_on = number
        self._signal(number)

    def _suspend(self, number: int, frame: FrameType | None) -> None:
        """Stop the command and this process until SIGCONT."""
        del frame
        self._signal(signal.SIGSTOP)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._suspend)
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        try:
            os.kill(self._pid, number) if number in _TO_ONE else os.killpg(self._pid, number)
        except ProcessLookupError:
            return

    def _cut_off(self) -> int:
        if self._passed_on is not None:
            signal.signal(self._passed_on, signal.SIG_DFL)
            os.kill(os.getpid(), self._passed_on)
        sys.stderr.write(_SAID_IN_JSON if self._as_json else _SAID)
        sys.stderr.flush()
        return CUT_OFF
