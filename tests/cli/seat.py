"""A person at a terminal of a given size, who types into it and resizes it, while a command runs in it."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import Any

from tests.cli.emulator import Emulator
from tests.cli.terminal import forking, nothing, run_in, without_ours
from tests.waiting import PATIENCE, wait_for

CTRL_C = "\x03"
LIVES = re.compile(r"\x1b\[\?(?:1049|25|7)[hl]|\x1b\[2J|\x1b\[0m(?:\x1b\[K)?")
"""The sequences of a live view, including those that restore the terminal."""


@dataclass
class Seat:
    """The screen as seen, and the person's actions."""

    screen: Emulator
    process: BaseProcess
    person: int
    program: int
    written: str = ""
    """All output, raw."""
    _decoder: codecs.IncrementalDecoder = field(default_factory=codecs.getincrementaldecoder("utf-8"))
    _before: list[Any] = field(default_factory=list)

    def look(self) -> Emulator:
        """Return the current screen."""
        while select.select([self.person], [], [], 0)[0]:
            text = self._decoder.decode(os.read(self.person, 65536))
            self.written += text
            self.screen.feed(text)
        return self.screen

    def until(self, what: Callable[[Emulator], object]) -> None:
        """Wait until the screen satisfies the condition."""
        wait_for(lambda: what(self.look()), lambda: "\n".join([*self.screen.shown, "---", *self.screen.everything]))

    def until_shown(self, text: str) -> None:
        """Wait for a text on the screen."""
        self.until(lambda screen: any(text in line for line in screen.shown))

    @property
    def said(self) -> str:
        """Return the output without our own sequences; each line of a live view is on a line of its own."""
        text = without_ours(self.written.replace("\r\n", "\n"))
        return LIVES.sub("", re.sub(r"\x1b\[\d*H", "\n", text))

    def press(self, keys: str) -> None:
        os.write(self.person, keys.encode())

    def signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def resize(self, columns: int, lines: int) -> None:
        """Resize the window."""
        self.look()
        self.screen.resize(columns, lines)
        set_size(self.person, columns, lines)

    def end(self) -> int | None:
        """Return the exit code, once the command has ended and all its output was read."""
        wait_for(lambda: self.look() and not self.process.is_alive(), lambda: "\n".join(self.screen.shown))
        self.look()
        return self.process.exitcode

    def is_as_before(self) -> bool:
        """Return whether the normal screen is shown, with a cursor, wrapping lines, and the terminal's original
        settings.
        """
        screen = self.look()
        same = termios.tcgetattr(self.program) == self._before
        return screen.cursor and screen.wraps and not screen.alternate and same


def set_size(terminal: int, columns: int, lines: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@contextmanager
def seated(
    words: Sequence[str],
    columns: int = 80,
    lines: int = 24,
    before: Callable[[], None] = nothing,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Seat]:
    """Run a command in a window of this size, as its session's own terminal."""
    person, program = pty.openpty()
    set_size(person, columns, lines)
    env = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **(environment or {})}
    given = dict(os.environ) | env
    process = forking.Process(target=run_in, args=(list(words), os.ttyname(program), (given, os.getcwd()), before))
    process.start()
    seat = Seat(Emulator(columns, lines), process, person, program, _before=termios.tcgetattr(program))
    try:
        yield seat
    finally:
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
        process.join(PATIENCE)
        os.close(person)
        os.close(program)
