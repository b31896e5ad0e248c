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
from rich.live import Live
from rich.text import Text

from cli.drawing.lines import Piece, ScreenLine, Tone, prose
from cli.drawing.output import say
from cli.drawing.screens import Screen, on_one_line, rows_of, screen_of
from cli.drawing.viewport import ViewRow, fit
from workflows.model.errors import ServiceError

_LOOKS = 10
"""How often each second the view and the window's size are checked."""
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
"""Switch wrapping off and on. If a terminal counts more columns than rich, the line is cut instead of wrapped."""
_HELP = "Ctrl-C leaves this view; what it shows goes on."
_MORE = "Too tall for this window: all of it is printed at the end, or at Ctrl-C."


@dataclass(frozen=True)
class LiveView:
    """A view: head lines that are always shown, then as many rows as fit."""

    head: Sequence[str]
    rows: Sequence[ViewRow]
    whole: Sequence[str]
    """The lines to print at the end."""


class LiveScreen(Live):
    """A view on the alternate screen, which it enters with its first content.

    Rich's thread draws it, so no signal interrupts the writing of a line.
    """

    def __init__(self) -> None:
        console = Console(force_terminal=True, color_system="standard", legacy_windows=False, _environ={})
        super().__init__(console=console, screen=True, refresh_per_second=_LOOKS)
        self.view = LiveView([], [], [])
        self._drawn: tuple[Screen, list[str]] | None = None
        self._fault: OSError | None = None
        self._changes_screen = False
        self._arrived: list[int] = []
        """Signals to handle as soon as the screen does not change."""

    def show(self, view: LiveView) -> None:
        """Show this view; raise if the terminal is gone."""
        self.view = view
        if self._fault:
            raise ServiceError(f"the output could not be written: {self._fault.strerror}")
        if not self.is_started:
            self._enter()

    def refresh(self) -> None:
        """Draw the view if its content or the window's size has changed."""
        screen = screen_of(sys.stdout) or Screen(80)
        lines = frame(self.view, screen)
        if self._drawn != (screen, lines):
            self._drawn = screen, lines
            self.update(Text("\n", no_wrap=True, overflow="crop").join(map(Text.from_ansi, lines)))
            try:
                with self.console:  # in one piece
                    self.console.clear()  # a terminal may count fewer columns than rich
                    super().refresh()
            except OSError as fault:
                self._fault = fault

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Show the normal screen during the context, for example to ask a question."""
        entered = self.is_started
        self.leave()
        yield
        if entered:
            self._enter()

    def leave(self) -> None:
        """Restore the terminal. Ignore errors, since it may be closed."""
        with self._in_one_piece():
            self._restore()
        self._handle_signals()

    def _enter(self) -> None:
        with self._in_one_piece():
            self._begin()
        self._handle_signals()

    def _begin(self) -> None:
        self._drawn = None
        self.console.file.write(_NO_WRAP)
        self.start(refresh=True)

    def _restore(self) -> None:
        if self.is_started:
            with suppress(OSError, ValueError):
                self.console.file.write(_WRAP)
                self.stop()

    @contextmanager
    def _in_one_piece(self) -> Iterator[None]:
        """Defer signals during the context: interrupted halfway, rich does not restore the terminal."""
        self._changes_screen = True
        try:
            yield
        finally:
            self._changes_screen = False

    def at_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal with the terminal restored, but not while the screen changes."""
        del frame
        if number == signal.SIGCONT:
            self._drawn = None  # after a stop that no handler was told of, the shell's lines are on the screen
        elif number not in self._arrived:
            self._arrived.append(number)
        self._handle_signals()

    def _handle_signals(self) -> None:
        """Suspend the process at Ctrl-Z until `fg`, raise KeyboardInterrupt at Ctrl-C, else SystemExit."""
        entered = self.is_started
        while self._arrived and not self._changes_screen:
            with self._in_one_piece():
                number = self._arrived.pop(0)
                self._restore()
                if number == signal.SIGTSTP:
                    _suspend()
                    if entered and not self._arrived:
                        self._begin()
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            if number != signal.SIGTSTP:
                raise SystemExit(128 + number)

    def print_whole(self) -> None:
        """Print the view on the normal screen, where it stays."""
        if self.view.whole:
            say(*self.view.whole)


@contextmanager
def live() -> Iterator[LiveScreen]:
    """Open a live view. At its end or Ctrl-C, leave the alternate screen and print the whole view."""
    shown = LiveScreen()
    with _handled_by(shown):
        try:
            yield shown
        except KeyboardInterrupt:
            shown.leave()
            shown.print_whole()
            raise
        finally:
            shown.leave()
    shown.print_whole()


def frame(view: LiveView, screen: Screen) -> list[str]:
    """Return exactly as many lines as the screen has, none wider than it."""
    room = screen.height - 1
    head = [part for line in view.head for part in rows_of(_folding(line), screen)]
    short = len(head) + bool(head) + len(view.rows) > room
    if short:
        head = head[: max(1, room // 2)]
    body = _body(view.rows, screen, max(0, room - len(head) - bool(head)))
    lines = [*head, *([""] if head else []), *body][: max(0, room)]
    help_ = on_one_line(ScreenLine(Piece(_MORE if short else _HELP, Tone.QUIET)), screen)
    return [*lines, *[""] * (room - len(lines)), help_]


def _body(rows: Sequence[ViewRow], screen: Screen, room: int) -> list[str]:
    """Draw every row whole if there is room; else one line for each row that is shown."""
    whole = [part for row in rows for part in rows_of(_folding(row.text), screen)] if len(rows) <= room else []
    if len(rows) <= len(whole) <= room:
        return whole
    return [on_one_line(row.text, screen) for row in fit(rows, room)]


def _folding(line: str) -> ScreenLine:
    """Wrap long lines of a live view: people don't copy from a changing screen."""
    return line if isinstance(line, ScreenLine) and line.below is not None else prose(line)


def _suspend() -> None:
    """Stop this process as Ctrl-Z does by default. Without this, Python reports an error if a Ctrl-Z arrives while the
    handler changes.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
    signal.signal(signal.SIGTSTP, handler)


@contextmanager
def _handled_by(shown: LiveScreen) -> Iterator[None]:
    """Let the view handle the signals that end, suspend or continue a command, except those that are ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT)
    before = {number: handler for number in numbers if (handler := signal.getsignal(number)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, shown.at_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
