"""Reading the logs of the daemon and its members: the last lines, then added ones."""

import time
from collections.abc import Iterator
from pathlib import Path

from activities.runs.regular_files import opened, size_of
from activities.settings.home import Home
from workflows.model.errors import NotFoundError

FOLLOW_PAUSE = 0.3
READ = 256 * 1024
"""Bytes from the end that are searched for the last lines."""


def names(home: Home) -> list[str]:
    """List the logs of this home."""
    return sorted(path.stem for path in home.logs.glob("*.log"))


def last(home: Home, name: str, count: int) -> list[str]:
    """Return the last lines of a log."""
    path = _path(home, name)
    start = max(0, size_of(path) - READ)
    lines = _from(path, start)[0].splitlines()
    return lines[1:][-count:] if start and len(lines) > 1 else lines[-count:]


def follow(home: Home, chosen: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each added line with its log's name. A truncated log is read from its start."""
    places = {name: size_of(_path(home, name)) for name in chosen}
    begun = dict.fromkeys(chosen, "")
    while True:
        for name, place in places.items():
            path = _path(home, name)
            text, places[name] = _from(path, place if size_of(path) >= place else 0)
            *whole, begun[name] = (begun[name] + text).split("\n")
            yield from ((name, line) for line in whole)
        time.sleep(FOLLOW_PAUSE)


def _path(home: Home, name: str) -> Path:
    if name not in names(home):
        there = ", ".join(names(home)) or "none yet"
        raise NotFoundError(f"there is no log {name!r}; there are: {there}", "service daemon status")
    return home.logs / f"{name}.log"


def _from(path: Path, start: int) -> tuple[str, int]:
    with opened(path) as file:
        file.seek(start)
        content = file.read(READ)
        return content.decode(errors="replace"), start + len(content)
