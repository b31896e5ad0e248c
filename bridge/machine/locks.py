"""One holder at a time: a kernel lock on a file in the home, released by death too, with the holder's pid inside.

No library: those leave a lock file behind whose holder died, or do not say who holds it.
"""

import fcntl
import os
import time
from pathlib import Path

_PAUSE = 0.02


class FileLock:
    """A held lock. The file stays when the lock goes: removing it would let two hold it at once."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def take(cls, path: Path, *, wait: float) -> "FileLock | None":
        """The lock, or None when somebody else keeps it for longer than `wait` seconds."""
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
        """Say who holds it; a child that inherits `fd` holds it for as long as it lives."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{pid}\n".encode(), 0)

    def release(self) -> None:
        """Let go of our copy; children that inherited it keep theirs."""
        os.close(self.fd)


def holder(path: Path) -> int | None:
    """The pid of whoever holds the lock; None when it is free."""
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
