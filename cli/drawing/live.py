"""A live view on the terminal's alternate screen, by rich: redrawn when its content or the window changes.

Its lines are made safe and fitted here, so that nothing scrolls. At the end the terminal is restored, and all of the
view is printed once.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from rich.console import Console
from rich.live import Live as Drawing
from rich.text import Text

from cli.drawing.lines import Line, Look, Piece, prose
from cli.drawing.output import say
from cli.drawing.screens import Screen, drawn, on_one_line, screen_of
from cli.drawing.viewport import Row, fitted
from workflows.model.errors import ServiceError

_LOOKS = 10
"""Checks of the view and of the window's size each second."""
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
"""A terminal may also count more columns than rich: such a line is cut, not wrapped."""
_HELP = "Ctrl-C leaves this view; what it shows goes on."
_MORE = "Too tall for this window: all of it is printed at the end, or at Ctrl-C."


@dataclass(frozen=True)
class View:
    """A view: head lines that are always shown, then as many rows as fit."""

    head: Sequence[str]
    rows: Sequence[Row]
    whole: Sequence[str]
    """The lines to print at the end."""


class Live(Drawing):
    """A view on the alternate screen, which it enters with its first content.

    Rich's thread draws it, so no signal interrupts the writing of a line.
    """

    def __init__(self) -> None:
        console = Console(force_terminal=True, color_system="standard", legacy_windows=False, _environ={})
        super().__init__(console=console, screen=True, refresh_per_second=_LOOKS)
        self.view = View([], [], [])
        self._drawn: tuple[Screen, list[str]] | None = None
        self._fault: OSError | None = None
        self._at_ctrl_z = signal.getsignal(signal.SIGTSTP)

    def show(self, view: View) -> None:
        """Show this view; raise if the terminal is gone."""
        self.view = view
        if self._fault:
            raise ServiceError(f"the output could not be written: {self._fault.strerror}")
        if not self.is_started:
            self._enter()

    def refresh(self) -> None:
        """Draw the view if anything has changed."""
        screen = screen_of(sys.stdout) or Screen(80)
        lines = framed(self.view, screen)
        if self._drawn != (screen, lines):
            self.update(Text("\n", no_wrap=True, overflow="crop").join(map(Text.from_ansi, lines)))
            try:
                with self.console:  # in one piece
                    self.console.clear()  # a terminal may count fewer columns than rich
                    super().refresh()
            except OSError as fault:
                self._fault = fault
            self._drawn = screen, lines

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Show the normal screen during the context, for example to ask a question."""
        entered = self.is_started
        self.leave()
        yield
        if entered:
            self._enter()

    def leave(self) -> None:
        """Restore the terminal. Errors are ignored: it may be closed."""
        if self.is_started:
            with _holding_ctrl_z():
                with suppress(OSError, ValueError):
                    self.console.file.write(_WRAP)
                    self.stop()
                signal.signal(signal.SIGTSTP, self._at_ctrl_z)

    def _enter(self) -> None:
        self._drawn = None
        with _holding_ctrl_z():
            signal.signal(signal.SIGTSTP, self._suspended)
            self.console.file.write(_NO_WRAP)
            self.start(refresh=True)

    def _suspended(self, number: int, frame: FrameType | None) -> None:
        """Restore the terminal at Ctrl-Z until `fg`."""
        del frame
        with self.aside():
            os.kill(os.getpid(), number)

    def print_whole(self) -> None:
        """Print the view on the normal screen, where it stays."""
        if self.view.whole:
            say(*self.view.whole)


@contextmanager
def live() -> Iterator[Live]:
    """Open a live view. At its end or Ctrl-C, leave the alternate screen and print the whole view."""
    shown = Live()
    with _ended_by_signals():
        try:
            yield shown
        except KeyboardInterrupt:
            shown.leave()
            shown.print_whole()
            raise
        finally:
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


@contextmanager
def _holding_ctrl_z() -> Iterator[None]:
    """Deliver Ctrl-Z after the context, in which the screen changes; to the thread that draws, never."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Raise SystemExit on SIGTERM and SIGHUP."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    mine = [number for number in before if before[number] is not signal.SIG_IGN]
    for number in mine:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, before[number])


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)
