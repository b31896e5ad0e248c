"""The person's pager, for texts that are taller than the terminal."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import termios
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import FrameType

from cli.drawing.screens import Screen
from cli.drawing.widths import width

_SEQUENCES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")
_LINKS = re.compile(r"\x1b\]8;;[^\x1b]*\x1b\\")
_USUAL = "less"
_OPTIONS = "FX"
"""Default options of `less`: quit at once if everything fits, and leave the text on the screen."""


def command(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the pager's command; empty if no pager is installed or wanted."""
    try:
        words = shlex.split(environment.get("PAGER", _USUAL))
    except ValueError:
        return []
    path = words and words[0] != "cat" and shutil.which(words[0], path=environment.get("PATH"))
    return words if path else []


def environment_of(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return an environment in which `less` shows colours, whatever its other options."""
    return {**environment, "LESS": f"-R {environment.get('LESS', _OPTIONS)}"}


def is_tall(text: str, screen: Screen) -> bool:
    """Return whether the text and a shell prompt below it do not fit."""
    columns = screen.width or 1
    rows = (max(1, -(-width(_SEQUENCES.sub("", line)) // columns)) for line in text.split("\n"))
    return sum(rows) > screen.height


def for_pager(text: str) -> str:
    """Remove links from the text, since not every pager supports them."""
    return _LINKS.sub("", text)


def run(lines: Iterable[str]) -> None:
    """Page the lines as they are produced, until the person closes the pager. Ctrl-C is one of the pager's keys.

    Restore the terminal's settings if the pager was killed. Raise OSError if it does not start.
    """
    settings = None
    with suppress(termios.error):
        settings = termios.tcgetattr(1)
    before = signal.signal(signal.SIGINT, _leave_to_the_pager)
    try:
        pager = subprocess.Popen(command(), stdin=subprocess.PIPE, errors="backslashreplace", env=environment_of())
        assert pager.stdin is not None
        with suppress(BrokenPipeError), pager:
            pager.stdin.writelines(lines)
        if settings and pager.returncode < 0:
            with suppress(termios.error):
                termios.tcsetattr(1, termios.TCSADRAIN, settings)
    finally:
        signal.signal(signal.SIGINT, before)


def _leave_to_the_pager(number: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing. SIG_IGN would be inherited by the pager, this handler is not."""
