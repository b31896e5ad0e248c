"""Artifacts that nothing needs any more. They are shared, so their age decides: whoever uses one makes it young again.

Writers and the clean-up take turns at a lock, so that none goes while somebody is about to use it.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = "lock"
YOUNG_SECONDS = 3600.0
"""What was used within this time is not made younger."""
MARGIN = 2 * YOUNG_SECONDS
"""An artifact is this much older than what may still need it, or it stays."""


@contextmanager
def using(root: Path) -> Iterator[None]:
    """Others may use artifacts at the same time; none is removed meanwhile."""
    with _locked(root, fcntl.LOCK_SH):
        yield


def refresh(path: Path) -> bool:
    """Whether it is there; it counts as used now."""
    try:
        if path.stat().st_mtime < time.time() - YOUNG_SECONDS:
            os.utime(path)
    except FileNotFoundError:
        return False
    return True


def counted_since(root: Path) -> float:
    """Since when uses make artifacts younger; before, in homes of an earlier release, they did not."""
    with using(root):
        return (root / LOCK).stat().st_mtime


def old(root: Path, before: float) -> Iterator[Path]:
    """Those that were last used before this moment."""
    for path in sorted((root / "sha256").glob("*/*")):
        if path.lstat().st_mtime < before - MARGIN:
            yield path


def discard(root: Path, path: Path, before: float) -> None:
    """Remove it, unless it was used meanwhile."""
    with _locked(root, fcntl.LOCK_EX):
        if path.exists() and path.lstat().st_mtime < before - MARGIN:
            path.unlink()


@contextmanager
def _locked(root: Path, kind: int) -> Iterator[None]:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, kind)
        yield
    finally:
        os.close(lock)
