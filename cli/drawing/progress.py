"""A progress line below all other output, on a terminal's standard error only.

It appears after half a second, so that quick commands draw nothing. Other output is printed above it, and it is removed
while a person is asked something. The cursor stays at the line's start: so no rest of the line is left if the window is
resized, and a killed process leaves nothing to restore.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from bridge.machine.step_messages import Step, unheard
from cli.drawing.output import draw, is_for_programs, stand_below, tell
from cli.drawing.screens import can_move, screen_of
from cli.drawing.widths import cut
from workflows.model.errors import ServiceError
from workflows.text.invisible import one_line

SLOW_SECONDS = 10.0
_BEGIN = 0.5
_TICK = 0.1
_USUAL = 80
_TURNS, _TURNS_IN_ASCII = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
_CLEAR = "\r\x1b[J"


@contextmanager
def progress(what: str = "", *, timed: bool = True) -> Iterator[Step]:
    """Yield a callback that sets the line's text, and show the line until the end; `timed` adds the elapsed time."""
    if is_for_programs():
        yield unheard
        return
    if not can_move(sys.stderr):
        with _tell_when_slow(what) as step:
            yield step
        return
    line = _ProgressLine(sys.stderr, what, timed=timed)
    with stand_below(line):
        line.begin()
        try:
            yield line.says
        finally:
            line.end()


@contextmanager
def _tell_when_slow(what: str) -> Iterator[Step]:
    """Print a line for each step that has lasted for ten seconds, where a progress line can't be drawn."""
    steps, over, printed = [what], threading.Event(), [""]

    def tell_slow() -> None:
        while not over.wait(SLOW_SECONDS):
            if steps[-1] != printed[-1]:
                printed.append(steps[-1])
                tell(f"{printed[-1]} …")

    threading.Thread(target=tell_slow, daemon=True, name="progress").start()
    try:
        yield steps.append
    finally:
        over.set()


class LastHeard:
    """A progress callback that forwards each step and remembers the last one."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self.said = ""

    def __call__(self, text: str) -> None:
        self.said = text
        self._step(text)


class _ProgressLine:
    """A progress line, and the thread that animates it."""

    def __init__(self, stream: TextIO, text: str, *, timed: bool) -> None:
        self._stream = stream
        self._text = text
        self._timed = timed
        self._since = time.monotonic()
        self._stands = False
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._turn, daemon=True, name="progress")

    def says(self, text: str) -> None:
        """Set the text."""
        self._text = text

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Stop the thread and remove the line."""
        self._over.set()
        with self.aside():
            pass

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Remove the progress line during the context, in which something else is written."""
        with self._lock:
            if self._stands:
                self._stands = False
                self._draw(_CLEAR)
            yield

    def _turn(self) -> None:
        turns = _TURNS if _can_say(self._stream, _TURNS) else _TURNS_IN_ASCII
        turn = 0
        wait = _BEGIN
        while not self._over.wait(wait):
            wait, turn = _TICK, turn + 1
            with self._lock:
                if self._text and not self._over.is_set():
                    self._stands = True
                    self._draw(f"{_CLEAR}{self._line(turns[turn % len(turns)])}\r")

    def _line(self, turn: str) -> str:
        screen = screen_of(self._stream)
        width = (screen and screen.width) or _USUAL
        return cut(one_line(f"{turn} {self._text}{self._clock()}"), width - 1)

    def _clock(self) -> str:
        return f"  {time.monotonic() - self._since:.0f} s" if self._timed else ""

    def _draw(self, text: str) -> None:
        with suppress(ServiceError, OSError, ValueError):  # the terminal is closed
            draw(text, self._stream)


def _can_say(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
