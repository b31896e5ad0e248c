"""The person's pager, for texts that are taller than the terminal."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from cli.drawing.screens import Screen
from cli.drawing.widths import width

_SEQUENCES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")
_LINKS = re.compile(r"\x1b\]8;;[^\x1b]*\x1b\\")
_USUAL = "less"
_OPTIONS = "FX"
"""Of `less`, unless the person has some of their own: end at once where all of it fits, and leave it on the screen."""


def command(environment: Mapping[str, str] = os.environ) -> list[str]:
    """What is typed to start it; nothing where there is none, or none is wanted."""
    try:
        words = shlex.split(environment.get("PAGER", _USUAL))
    except ValueError:
        return []
    found = words and words[0] != "cat" and shutil.which(words[0], path=environment.get("PATH"))
    return words if found else []


def environment_of(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Colours are shown, whatever else `less` is told."""
    return {**environment, "LESS": f"-R {environment.get('LESS', _OPTIONS)}"}


def is_tall(text: str, screen: Screen) -> bool:
    """Whether the text and the prompt of a shell below it do not fit."""
    columns = screen.width or 1
    rows = (max(1, -(-width(_SEQUENCES.sub("", line)) // columns)) for line in text.split("\n"))
    return sum(rows) > screen.height


def for_pager(text: str) -> str:
    """Without links: not every pager knows them."""
    return _LINKS.sub("", text)


def run(lines: Iterable[str]) -> None:
    """Until the person has seen enough; the lines come as fast as they are read."""
    with _keys_are_its_own():
        pager = subprocess.Popen(command(), stdin=subprocess.PIPE, errors="backslashreplace", env=environment_of())
        assert pager.stdin is not None
        with suppress(BrokenPipeError), pager:
            pager.stdin.writelines(lines)


def show(file: int) -> None:
    """The same with a file that is whole."""
    with _keys_are_its_own():
        subprocess.run(command(), stdin=file, env=environment_of(), check=False)


@contextmanager
def _keys_are_its_own() -> Iterator[None]:
    """Ctrl-C ends what the pager does, and neither it nor us."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
