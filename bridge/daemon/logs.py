"""The logs of the daemon and its members. Several programs append to each log; rotation bounds its size (ruling N8)."""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from activities.runs.regular_files import create, open_to_append, open_to_read, size_of
from activities.settings.home import Home
from workflows.model.errors import NotFoundError, with_nearest

log = logging.getLogger(__name__)

KEEP_BYTES = 8 * 1024 * 1024
"""Largest size of each log. One rotated copy is kept as well."""
PAUSE = 20.0
LOOKS, REST_PAUSE = 10, 0.002
_EXPLAIN_BYTES = 64 * 1024


def open_log(path: Path) -> BinaryIO:
    """Open a regular file to append to it; refuse anything else at its path."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return open_to_append(path)


async def keep_small(folder: Path) -> None:
    """Check the logs periodically, and rotate those that exceed the limit, until cancelled."""
    while True:
        await asyncio.to_thread(_set_all_aside, folder)
        await asyncio.sleep(PAUSE)


def _set_all_aside(folder: Path) -> None:
    for path in sorted(folder.glob("*.log")):
        try:
            set_aside(path)
        except OSError as error:
            log.warning("cannot keep %s small: %s", path, error.strerror)


def set_aside(path: Path, limit: int = KEEP_BYTES) -> None:
    """Copy a log that exceeds the limit over its previous copy, and truncate it.

    Programs keep the log open in append mode, so they need not reopen it. Bytes written between the last read and the
    truncation are lost. To keep them few, read again while there is more, up to a limit, and wait a moment if the last
    line is incomplete.
    """
    if size_of(path) <= limit:
        return
    copy = path.with_name(f"{path.name}.1")
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with open(path, "rb+", buffering=0) as grown, open(create(draft), "wb", buffering=0) as kept:
        whole = True
        for _ in range(LOOKS):
            if whole:
                os.sched_yield()  # be preempted here, rather than between the last read and the truncation
            else:
                time.sleep(REST_PAUSE)
            shutil.copyfileobj(grown, kept, 1024 * 1024)
            end = grown.tell()
            whole = os.pread(grown.fileno(), 1, end - 1) == b"\n"
            if whole and os.fstat(grown.fileno()).st_size == end:
                break
        os.ftruncate(grown.fileno(), 0)
    draft.replace(copy)


def log_end(path: Path, start: int = 0) -> str:
    """Return the end of the text after `start`, enough to explain a failure."""
    with path.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(start if start <= size else 0, size - _EXPLAIN_BYTES))
        return log.read().decode(errors="replace")


def excerpt(text: str, lines: int = 8) -> str:
    """Return the last lines of a log, indented for use below a sentence."""
    kept = [line for line in text.splitlines() if line.strip()][-lines:]
    return "".join(f"\n  | {line[:500]}" for line in kept)


FOLLOW_PAUSE = 0.3
READ = 256 * 1024
"""The number of bytes at the end of a log that are searched for its last lines."""


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
    unfinished = dict.fromkeys(chosen, "")
    while True:
        for name, place in places.items():
            path = _path(home, name)
            text, places[name] = _from(path, place if size_of(path) >= place else 0)
            *whole, unfinished[name] = (unfinished[name] + text).split("\n")
            yield from ((name, line) for line in whole)
        time.sleep(FOLLOW_PAUSE)


def _path(home: Home, name: str) -> Path:
    if name not in names(home):
        there = ", ".join(names(home)) or "none yet"
        missing = NotFoundError(f"there is no log {name!r}; there are: {there}", "service daemon status")
        raise with_nearest(missing, name, names(home))
    return home.logs / f"{name}.log"


def _from(path: Path, start: int) -> tuple[str, int]:
    with open_to_read(path) as file:
        file.seek(start)
        content = file.read(READ)
        return content.decode(errors="replace"), start + len(content)
