"""Clean-up of artifacts that nothing needs any more. They are shared, so their age decides: using one makes it young.

Writers and the clean-up share a lock, so that no artifact is removed while somebody is about to use it.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = "lock"
YOUNG_SECONDS = 3600.0
"""An artifact used within this time is not touched again."""
MARGIN = 2 * YOUNG_SECONDS
"""Safety margin: an artifact is removed only if it is this much older than anything that may need it."""


@contextmanager
def using(root: Path) -> Iterator[None]:
    """Take the shared lock: others may use artifacts, but none is removed."""
    with _locked(root, fcntl.LOCK_SH):
        yield


def refresh(path: Path) -> bool:
    """Mark an artifact as used now; return False if it is missing."""
    try:
        if path.stat().st_mtime < time.time() - YOUNG_SECONDS:
            os.utime(path)
    except FileNotFoundError:
        return False
    return True


def counted_since(root: Path) -> float:
    """Return since when uses make artifacts younger; in homes of an earlier release they did not."""
    with using(root):
        return (root / LOCK).stat().st_mtime


def old(root: Path, before: float) -> Iterator[Path]:
    """Yield the artifacts last used before this time."""
    for path in sorted((root / "sha256").glob("*/*")):
        if path.lstat().st_mtime < before - MARGIN:
            yield path


def discard(root: Path, path: Path, before: float) -> None:
    """Remove an artifact, unless it was used meanwhile."""
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
