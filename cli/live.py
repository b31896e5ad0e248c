"""A view that lives: on a screen of its own, drawn anew at each change of what it shows and of the window.

However tall the view is and however the window is pulled, nothing scrolls and nothing is left behind: each line is
put in its place. When it ends, the terminal is as it was, and all of the view is printed once.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from cli.drawing.lines import Line, Piece, prose
from cli.drawing.looks import Look
from cli.drawing.screens import Screen, drawn, on_one_line, screen_of
from cli.drawing.viewport import Row, fitted
from cli.output import draw, say
from workflows.model.errors import ServiceError

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The other screen, no cursor, no line that goes on in the next one."""
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_PLACE = "\x1b[{}H{}\x1b[0m\x1b[K"
_LOOK = 0.05
"""Seconds between two looks at the size of the window."""
_HELP = "Ctrl-C leaves this view; what it shows goes on."
_MORE = "Too tall for this window: all of it is printed at the end, or at Ctrl-C."


@dataclass(frozen=True)
class View:
    """What is shown: a few lines that always are, then as many of the others as there is room for."""

    head: Sequence[str]
    rows: Sequence[Row]
    whole: Sequence[str]
    """What is printed in the end."""


class Live:
    """The view on its screen, which is entered when there is something to show."""

    def __init__(self) -> None:
        self._entered = False
        self._view: View | None = None
        self._drawn: tuple[Screen, list[str]] | None = None
        self._writes = False
        self._put_off = False

    def show(self, view: View) -> None:
        """Draw it, where that changes anything."""
        self._view = view
        if not self._entered:
            self._enter()
        self._draw()

    def last(self, view: View) -> None:
        """It is over: this is printed."""
        self._view = view

    def pause(self, seconds: float) -> None:
        """Wait; a window of another size is drawn at once."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(_LOOK, left))
            if self._drawn and self._drawn[0] != _screen():
                self._draw()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Show the usual screen meanwhile, as to ask something."""
        entered = self._entered
        self.leave()
        yield
        if entered:
            self._enter()
            self._draw()

    def leave(self) -> None:
        """Put the terminal back as it was. Who has gone need not see it."""
        if self._entered:
            self._entered = False
            with suppress(ServiceError, OSError, ValueError):
                self._write(_LEAVE)

    def suspended(self, number: int, frame: FrameType | None) -> None:
        """Give the shell its terminal until `fg`, at Ctrl-Z; a line that is being written is finished first."""
        del frame
        self._put_off = self._writes
        if self._put_off:
            return
        with self.aside():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            signal.signal(number, self.suspended)

    def _enter(self) -> None:
        self._entered = True
        self._drawn = None
        self._write(_ENTER)

    def _draw(self) -> None:
        assert self._view is not None
        screen = _screen()
        lines = framed(self._view, screen)
        if self._drawn != (screen, lines):
            self._write("".join(_PLACE.format(number, line) for number, line in enumerate(lines, 1)))
            self._drawn = (screen, lines)

    def _write(self, text: str) -> None:
        self._writes = True
        try:
            draw(text, sys.stdout)
        finally:
            self._writes = False
        if self._put_off:
            self.suspended(signal.SIGTSTP, None)

    def print_whole(self) -> None:
        """On the usual screen, where it stays."""
        if self._view is not None:
            say(*self._view.whole)


@contextmanager
def live() -> Iterator[Live]:
    """A screen for a view until it is over, or Ctrl-C: then all of it is printed. Whatever ends it, it is put away."""
    shown = Live()
    with _ended_by_signals(shown.suspended):
        try:
            yield shown
        except KeyboardInterrupt:
            shown.leave()
            shown.print_whole()
            raise
        except BaseException:
            shown.leave()
            raise
        shown.leave()
    shown.print_whole()


def framed(view: View, screen: Screen) -> list[str]:
    """As many lines as the screen has, none wider than it is."""
    room = screen.height - 1
    head = [part for line in view.head for part in drawn(_folding(line), screen)]
    short = len(head) + bool(head) + len(view.rows) > room
    if short:
        head = head[: max(1, room // 2)]
    body = _body(view.rows, screen, max(0, room - len(head) - bool(head)))
    lines = [*head, *([""] if head else []), *body][: max(0, room)]
    help_ = on_one_line(Line(Piece(_MORE if short else _HELP, Look.QUIET)), screen)
    return [*lines, *[""] * (room - len(lines)), help_]


def _body(rows: Sequence[Row], screen: Screen, room: int) -> list[str]:
    """Each whole, on as many lines as it takes, where there is room for that; else one line for each that is shown."""
    whole = [part for row in rows for part in drawn(_folding(row.text), screen)] if len(rows) <= room else []
    if len(rows) <= len(whole) <= room:
        return whole
    return [on_one_line(row.text, screen) for row in fitted(rows, room)]


def _folding(line: str) -> Line:
    """Nothing is copied from a screen that changes: what is longer than it stands on several lines."""
    return line if isinstance(line, Line) and line.below is not None else prose(line)


def _screen() -> Screen:
    return screen_of(sys.stdout) or Screen(80)


@contextmanager
def _ended_by_signals(suspend: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """An order to end, or a terminal that is closed, ends it as an exception does; Ctrl-Z puts it away for a while."""
    handlers: dict[int, Callable[[int, FrameType | None], None]] = {
        signal.SIGTERM: _end,
        signal.SIGHUP: _end,
        signal.SIGTSTP: suspend,
    }
    before = {number: signal.getsignal(number) for number in handlers}
    mine = [number for number in handlers if before[number] is not signal.SIG_IGN]
    for number in mine:
        signal.signal(number, handlers[number])
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, before[number])


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)
