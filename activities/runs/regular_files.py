"""Opening what others may have put something else in the place of: a regular file of our own, or a sentence.

A link is not followed, a pipe not waited for. Standard library only: supervisors use it too.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_FILE = (errno.ELOOP, errno.EMLINK, errno.ENXIO)
"""What opening a link and a socket is answered with."""


class NotRegularError(OSError):
    """Something else stands where a file of the service's should be; it was not read."""


def opened(path: Path, *, ours: bool = True) -> BufferedReader:
    """For reading; with `ours` it must belong to this account too. FileNotFoundError when there is nothing."""
    return open(_descriptor(path, os.O_RDONLY, ours), "rb")


def content_of(path: Path, most: int) -> bytes:
    """What is in a file of this account, or its first `most` bytes. FileNotFoundError when there is nothing."""
    descriptor = _descriptor(path, os.O_RDONLY, True)
    try:
        return os.read(descriptor, min(os.fstat(descriptor).st_size, most))
    finally:
        os.close(descriptor)


def appended(path: Path) -> BinaryIO:
    """For writing at its end; made when there is nothing."""
    return open(_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, True), "ab")


def created(path: Path) -> int:
    """A new file for writing, its owner's alone; FileExistsError when there is anything."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def write_private(path: Path, text: str) -> None:
    """Replace the file in one step, readable by its owner only."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def private_folder(path: Path) -> None:
    """Make a folder and those above it that are missing, each its owner's alone whatever the umask is."""
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        if not path.is_dir():
            raise


def size_of(path: Path) -> int:
    """Nothing when there is no such file."""
    found = stat_of(path)
    return found.st_size if found else 0


def stat_of(path: Path) -> os.stat_result | None:
    """None when there is no such regular file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _descriptor(path: Path, flags: int, ours: bool) -> int:
    try:
        descriptor = os.open(path, flags | SAFE, 0o600)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise NotRegularError(f"{path} is a link or a socket and is not read") from None
        raise
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and (not ours or found.st_uid == os.geteuid()):
        os.set_blocking(descriptor, True)  # whoever gets it, a program too, finds it as usual
        return descriptor
    os.close(descriptor)
    what = "belongs to another account" if stat.S_ISREG(found.st_mode) else "is not a regular file"
    raise NotRegularError(f"{path} {what} and is not read")
