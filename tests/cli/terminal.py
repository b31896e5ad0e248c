"""A command as a person types it: in a process of its own with real terminals, forked so that imports are shared."""

import os
import pty
import select
import signal
import sys
import tty
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper

SECONDS = 60


@dataclass(frozen=True)
class Printed:
    """What came out, byte by byte as the command wrote it."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return (self.out + self.err).decode()


def typed(words: Sequence[str], keys: str = "", before: Callable[[], None] = lambda: None) -> Printed:
    """Run one command; both of its streams are terminals, and `keys` are what is typed into it."""
    (out, program_out), (err, program_err) = pty.openpty(), pty.openpty()
    for each in (program_out, program_err):
        tty.setraw(each)
    pid = os.fork()
    if pid == 0:
        _become(words, program_out, program_err, before)
    for each in (program_out, program_err):
        os.close(each)
    os.write(out, keys.encode())
    said = _read(out, err, pid)
    _, status = os.waitpid(pid, 0)
    return Printed(os.waitstatus_to_exitcode(status), said[out], said[err])


def _become(words: Sequence[str], out: int, err: int, before: Callable[[], None]) -> None:
    """In the child: the streams of a program that was just started."""
    try:
        os.setsid()
        for number, file in ((0, out), (1, out), (2, err)):
            os.dup2(file, number)
        sys.stdin, sys.stdout, sys.stderr = (
            TextIOWrapper(
                os.fdopen(number, mode, buffering=0 if number == 2 else -1, closefd=False), "utf-8", errors, "\n"
            )
            for number, mode, errors in ((0, "rb", "strict"), (1, "wb", "strict"), (2, "wb", "backslashreplace"))
        )
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["service", *words]
        before()
        from cli.main import run

        run()
    finally:
        os._exit(99)


def _read(out: int, err: int, pid: int) -> dict[int, bytes]:
    said, live = {out: b"", err: b""}, {out, err}
    while live:
        ready, _, _ = select.select(live, [], [], SECONDS)
        if not ready:
            os.kill(pid, signal.SIGKILL)
        for each in ready:
            try:
                more = os.read(each, 65536)
            except OSError:  # nobody has the terminal any more
                more = b""
            said[each] += more
            if not more:
                live.remove(each)
                os.close(each)
    return said
