"""File locks that end with their holder, however it ends, and that work across processes.

No library: lock file libraries neither pass a lock on to the git they start, nor remove the file when it is free.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def hold_lock(file: Path) -> Iterator[int]:
    """Hold an exclusive lock, and delete its file afterwards. A git that inherits the lock keeps it when its caller
    is killed.
    """
    while True:
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _names(file, lock):  # the last holder deleted this file, so the next one locks another file
                continue
            try:
                yield lock
            finally:
                file.unlink(missing_ok=True)
            return
        finally:
            os.close(lock)


def is_free(file: Path) -> bool:
    """Return whether no process holds the lock at this moment."""
    try:
        lock = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def clear_ref_lock(common: Path, branch: str) -> None:
    """Remove the ref lock that a killed git left on a branch. Call this only if no other process writes the branch."""
    (common / "refs/heads" / f"{branch}.lock").unlink(missing_ok=True)


def _names(file: Path, lock: int) -> bool:
    try:
        return os.path.samestat(os.stat(file), os.fstat(lock))
    except FileNotFoundError:
        return False
