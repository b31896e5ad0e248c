"""A live view on the terminal's alternate screen, redrawn when its content or the window changes.

Whatever the sizes of view and window, nothing scrolls and nothing is left behind: each line is put in its place. At the
end the terminal is restored, and the whole view is printed once.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from cli.drawing.lines import Line, Look, Piece, prose
from cli.drawing.output import draw, say
from cli.drawing.screens import Screen, drawn, on_one_line, screen_of
from cli.drawing.viewport import Row, fitted
from workflows.model.errors import ServiceError

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Alternate screen, no cursor, no line wrap."""
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_PLACE = "\x1b[{}H{}\x1b[0m\x1b[K"
_LOOK = 0.05
"""Seconds between two checks of the window's size."""
_HELP = "Ctrl-C leaves this view; what it shows goes on."
_MORE = "Too tall for this window: all of it is printed at the end, or at Ctrl-C."


@dataclass(frozen=True)
class View:
    """A view: head lines that are always shown, then as many rows as fit."""

    head: Sequence[str]
    rows: Sequence[Row]
    whole: Sequence[str]
    """The lines to print at the end."""


class Live:
    """A view on the alternate screen, which it enters with its first content."""

    def __init__(self) -> None:
        self._entered = False
        self._view: View | None = None
        self._drawn: tuple[Screen, list[str]] | None = None
        self._writes = False
        self._put_off = False

    def show(self, view: View) -> None:
        """Draw the view if anything has changed."""
        self._view = view
        if not self._entered:
            self._enter()
        self._draw()

    def last(self, view: View) -> None:
        """Set the final view, to be printed at the end."""
        self._view = view

    def pause(self, seconds: float) -> None:
        """Wait, and redraw at once if the window's size changes."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(_LOOK, left))
            if self._drawn and self._drawn[0] != _screen():
                self._draw()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Show the normal screen during the context, for example to ask a question."""
        entered = self._entered
        self.leave()
        yield
        if entered:
            self._enter()
            self._draw()

    def leave(self) -> None:
        """Restore the terminal. Errors are ignored: it may be closed."""
        if self._entered:
            self._entered = False
            with suppress(ServiceError, OSError, ValueError):
                self._write(_LEAVE)

    def suspended(self, number: int, frame: FrameType | None) -> None:
        """Restore the terminal at Ctrl-Z until `fg`; a line being written is finished first."""
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
        """Print the final view on the normal screen, where it stays."""
        if self._view is not None:
            say(*self._view.whole)


@contextmanager
def live() -> Iterator[Live]:
    """Open a live view. At its end or Ctrl-C, leave the alternate screen and print the whole view."""
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
    """Return exactly as many lines as the screen has, none wider than it."""
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
    """Draw every row whole if there is room; else one line for each row that is shown."""
    whole = [part for row in rows for part in drawn(_folding(row.text), screen)] if len(rows) <= room else []
    if len(rows) <= len(whole) <= room:
        return whole
    return [on_one_line(row.text, screen) for row in fitted(rows, room)]


def _folding(line: str) -> Line:
    """Fold long lines of a live view: nobody copies from a screen that changes."""
    return line if isinstance(line, Line) and line.below is not None else prose(line)


def _screen() -> Screen:
    return screen_of(sys.stdout) or Screen(80)


@contextmanager
def _ended_by_signals(suspend: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Raise SystemExit on SIGTERM and SIGHUP, and suspend the view on Ctrl-Z."""
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
