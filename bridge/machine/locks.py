"""File locks with one holder at a time: a kernel lock that the holder's death releases, with its pid in the file.

Libraries leave a dead holder's lock file behind, or do not say who holds the lock.
"""

import fcntl
import os
import time
from pathlib import Path

_PAUSE = 0.02


class FileLock:
    """A held lock. The file stays after the release: removing it would let two hold the lock at once."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def take(cls, path: Path, *, wait: float) -> "FileLock | None":
        """Take the lock; return None if another holds it for longer than `wait` seconds."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + wait
        while not _try(fd, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                os.close(fd)
                return None
            time.sleep(_PAUSE)
        lock = cls(fd)
        lock.mark(os.getpid())
        return lock

    def mark(self, pid: int) -> None:
        """Write the holder's pid into the file; a child that inherits `fd` holds the lock for as long as it lives."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{pid}\n".encode(), 0)

    def release(self) -> None:
        """Close this process's file descriptor; children that inherited it keep theirs, and so the lock."""
        os.close(self.fd)


def holder(path: Path) -> int | None:
    """Return the pid of the lock's holder; None if the lock is free."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        while not _try(fd, fcntl.LOCK_SH):
            written = os.pread(fd, 32, 0).strip()
            if written:
                return int(written)
            time.sleep(_PAUSE)
        return None
    finally:
        os.close(fd)


def _try(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
