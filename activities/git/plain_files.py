"""Reading of files that somebody else may have written: links are not followed, and only regular files are opened."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotPlainError(OSError):
    """Not a regular file or folder, or a file that is too large."""


@contextmanager
def folder_at(top: Path | str, above: int | None = None) -> Iterator[int]:
    """Open a folder that is not a link; a relative name is looked up in `above`."""
    yield from _closing(os.open(top, _FOLDER, dir_fd=above))


@contextmanager
def folder_below(top: int, path: str) -> Iterator[int]:
    """Open the folder at a path below `top`, one component at a time. A component that is a link is refused."""
    if not path:
        yield top
        return
    here = os.dup(top)
    for part in path.split("/"):
        try:
            below = os.open(part, _FOLDER, dir_fd=here)
        finally:
            os.close(here)
        here = below
    yield from _closing(here)


def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def file_below(folder: int, name: str, most: int) -> Iterator[int]:
    """Open a regular file in a folder without ever blocking."""
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise NotPlainError(f"{name} is not a plain file of at most {most} bytes")
        yield descriptor
    finally:
        os.close(descriptor)


def content(folder: int, path: str, most: int) -> bytes:
    """Read a whole regular file below an open folder; refuse one larger than `most` bytes."""
    above, _, name = path.rpartition("/")
    with folder_below(folder, above) as here, file_below(here, name, most) as descriptor:
        pieces, left = [], most + 1
        while left > 0 and (piece := os.read(descriptor, min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
        if left <= 0:
            raise NotPlainError(f"{name} has more than {most} bytes")
        return b"".join(pieces)


def text(folder: int, path: str, most: int) -> str | None:
    """Read a file as stripped text; None if it can't be read."""
    with suppress(OSError):
        return os.fsdecode(content(folder, path, most)).strip()
    return None


def copy(source: int, target: Path, most: int) -> int:
    """Copy an open file to a path of the service, at most `most` bytes. Return the number of bytes."""
    copied = 0
    with target.open("wb") as file:
        while piece := os.read(source, 1 << 20):
            copied += len(piece)
            if copied > most:
                raise NotPlainError(f"it has more than {most} bytes")
            file.write(piece)
    return copied
