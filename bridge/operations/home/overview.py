"""An overview of the service in figures that are quick to compute."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

from activities.git.work_folder import service_git_dir
from activities.settings.home import Home
from activities.store import waiting_rows
from activities.store.registry import host_rows
from activities.store.waiting_rows import Counts
from bridge.operations.jobs import spend
from bridge.operations.jobs.spend import SpendSum
from bridge.operations.service import Service
from workflows.policy.host_availability import lacks_worker

GLANCE_SECONDS, LOOK_SECONDS = 0.03, 5.0
"""Seconds for measuring the home, in a glance and in full; a size that takes longer is a minimum."""


@dataclass(frozen=True)
class HostNow:
    """A host, and how many of its slots are in use."""

    name: str
    slots: int
    running: int
    works: bool
    """True if its worker sent a heartbeat in the last minute."""


@dataclass(frozen=True)
class HomePart:
    """A part of the home, and its size."""

    name: str
    bytes: int
    whole: bool
    """False if measuring ran out of time, so that the part is larger."""


@dataclass(frozen=True)
class Disk:
    """Disk use of the home, and free space."""

    bytes: int
    whole: bool
    parts: tuple[HomePart, ...]
    free: int


@dataclass(frozen=True)
class Overview:
    """All figures of the overview; without a store, only those of the disk."""

    counts: Counts | None
    slots: tuple[HostNow, ...] | None
    spent_today: SpendSum | None
    disk: Disk


def find(service: Service, seconds: float = GLANCE_SECONDS) -> Overview:
    """Compute the overview's figures now."""
    disk = measure(service.home, seconds)
    if not service.settings.store.url and not service.home.store.exists():
        return Overview(None, None, None, disk)
    hosts = tuple(
        HostNow(host.name, host.slots, host.running, works=not lacks_worker(host.seen))
        for host in host_rows.every(service.store)
    )
    return Overview(waiting_rows.counts(service.store), hosts, spend.find(service, days=1).total, disk)


def measure(home: Home, seconds: float) -> Disk:
    """Measure the parts of the home, as far as the time allows."""
    until = time.monotonic() + seconds
    parts = tuple(_part(name, paths, until) for name, paths in _places(home).items())
    place = next(path for path in (home.root, *home.root.parents) if path.exists())
    shown = tuple(part for part in parts if part.bytes or not part.whole)
    total, whole = sum(part.bytes for part in shown), all(part.whole for part in shown)
    return Disk(total, whole, shown, shutil.disk_usage(place).free)


def _places(home: Home) -> dict[str, tuple[Path, ...]]:
    """Return the paths of each part of the home, those that are quick to measure first."""
    return {
        "store": _database(home.store),
        "temporal": _database(home.temporal_db),
        "logs": (home.logs, home.audit.parent),
        "artifacts": (home.artifacts,),
        "transcripts": (home.runs, home.programs),
        "worktrees": (home.worktrees, home.root / service_git_dir.FOLDER, home.mirrors),
    }


def _database(path: Path) -> tuple[Path, ...]:
    """Return the files of an SQLite database, with its write-ahead log."""
    return (path, *(path.with_name(f"{path.name}-{more}") for more in ("wal", "shm")))


def _part(name: str, paths: tuple[Path, ...], until: float) -> HomePart:
    total = 0
    for path in paths:
        for size in sizes(path):
            total += size
            if time.monotonic() > until:
                return HomePart(name, total, whole=False)
    return HomePart(name, total, whole=True)


def sizes(path: Path) -> Iterator[int]:
    """Yield the size of a file, or of each file below a folder. Links are not followed, and vanished files are
    skipped.
    """
    with suppress(OSError):
        status = path.lstat()
        if S_ISDIR(status.st_mode):
            yield from _in_folders(path)
        else:
            yield status.st_size


def _in_folders(path: Path) -> Iterator[int]:
    """Yield each file's size, and 0 for each folder, so that a caller with a time limit can check the clock."""
    folders = [path]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                    yield 0
                else:
                    with suppress(OSError):
                        yield entry.stat(follow_symlinks=False).st_size
