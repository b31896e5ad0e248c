"""Safe opening of files that others may have replaced: only a regular file of this account, or an error.

Links are not followed, and pipes don't block. Standard library only: supervisors use it too.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_FILE = (errno.ELOOP, errno.EMLINK, errno.ENXIO)
"""Errors of opening a link or a socket."""


class NotRegularError(OSError):
    """The path of a service file is not a regular file of this account; it was not read."""


def open_to_read(path: Path, *, ours: bool = True) -> BufferedReader:
    """Open a file for reading; with `ours` the file must belong to this account. Raise FileNotFoundError if the file is
    missing.
    """
    return open(_descriptor(path, os.O_RDONLY, ours), "rb")


def content_of(path: Path, most: int) -> bytes:
    """Read a file of this account, at most `most` bytes. Raise FileNotFoundError if it is missing."""
    descriptor = _descriptor(path, os.O_RDONLY, True)
    try:
        return os.read(descriptor, min(os.fstat(descriptor).st_size, most))
    finally:
        os.close(descriptor)


def open_to_append(path: Path) -> BinaryIO:
    """Open a file for appending; create it if it is missing."""
    return open(_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, True), "ab")


def create(path: Path) -> int:
    """Create a private file for writing. Raise FileExistsError if the path exists."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def write_private(path: Path, text: str) -> None:
    """Replace the file atomically, readable by its owner only."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def private_folder(path: Path) -> None:
    """Make a folder and its missing parents, each private to its owner whatever the umask."""
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        if not path.is_dir():
            raise


def size_of(path: Path) -> int:
    """Return the size of a file; 0 if it is missing."""
    status = stat_of(path)
    return status.st_size if status else 0


def stat_of(path: Path) -> os.stat_result | None:
    """Return the stat data of a regular file; None if it is missing."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _descriptor(path: Path, flags: int, ours: bool) -> int:
    try:
        descriptor = os.open(path, flags | SAFE, 0o600)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise NotRegularError(f"{path} is a link or a socket and is not read") from None
        raise
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and (not ours or status.st_uid == os.geteuid()):
        os.set_blocking(descriptor, True)  # programs that get the descriptor expect it to block
        return descriptor
    os.close(descriptor)
    what = "belongs to another account" if stat.S_ISREG(status.st_mode) else "is not a regular file"
    raise NotRegularError(f"{path} {what} and is not read")
