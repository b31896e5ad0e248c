"""Reading the logs of the daemon and its members: their last lines, then what is added."""

import time
from collections.abc import Iterator
from pathlib import Path

from activities.runs.regular_files import opened, size_of
from activities.settings.home import Home
from workflows.model.errors import NotFoundError

PAUSE = 0.3
READ = 256 * 1024
"""Bytes from the end in which the last lines are looked for."""


def names(home: Home) -> list[str]:
    """Which logs there are."""
    return sorted(path.stem for path in home.logs.glob("*.log"))


def last(home: Home, name: str, count: int) -> list[str]:
    """The last lines of a log."""
    path = _path(home, name)
    start = max(0, size_of(path) - READ)
    lines = _from(path, start)[0].splitlines()
    return lines[1:][-count:] if start and len(lines) > 1 else lines[-count:]


def follow(home: Home, chosen: list[str]) -> Iterator[tuple[str, str]]:
    """Each line that is added from now on and the log it stands in; a log that is begun anew is read from its begin."""
    places = {name: size_of(_path(home, name)) for name in chosen}
    begun = dict.fromkeys(chosen, "")
    while True:
        for name, place in places.items():
            path = _path(home, name)
            text, places[name] = _from(path, place if size_of(path) >= place else 0)
            *whole, begun[name] = (begun[name] + text).split("\n")
            yield from ((name, line) for line in whole)
        time.sleep(PAUSE)


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
