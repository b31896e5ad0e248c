"""Files that somebody else may have written, read as data: no link is followed, nothing but plain files is opened."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


SMALL = 64
"""Files and folders, at most, in what takes less time to remove here than by a program that is started for it."""


class NotPlainError(OSError):
    """It is no plain file or folder, or it is larger than anything we would read."""


@contextmanager
def folder_at(top: Path | str, above: int | None = None) -> Iterator[int]:
    """A descriptor of a folder that is no link itself; what is `above` tells where its name is one."""
    yield from _closing(os.open(top, _FOLDER, dir_fd=above))


@contextmanager
def folder_below(top: int, path: str) -> Iterator[int]:
    """A descriptor of a folder below another one, or of itself, step by step: no step is a link."""
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
    """A descriptor of a plain file in a folder; opening it waits for nobody."""
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            raise NotPlainError(f"{name} is no plain file of at most {most} bytes")
        yield descriptor
    finally:
        os.close(descriptor)


def content(folder: int, path: str, most: int) -> bytes:
    """All of a plain file."""
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
    """The same as text without its line's end; None when there is nothing that can be read."""
    with suppress(OSError):
        return os.fsdecode(content(folder, path, most)).strip()
    return None


def removed_small(path: Path) -> bool:
    """Remove a folder with everything in it. False when it has more than a few files, or not all can be removed."""
    try:
        with folder_at(path) as top:
            _empty(top, SMALL)
        path.rmdir()
    except OSError:
        return False
    return True


def _empty(folder: int, most: int) -> int:
    """Remove what is in a folder, at most so many; returns how many are left of them."""
    with os.scandir(folder) as listing:
        for entry in listing:
            most -= 1
            if most < 0:
                raise OSError("too many files")
            if entry.is_dir(follow_symlinks=False):
                with suppress(OSError):  # most of git's folders are empty
                    os.rmdir(entry.name, dir_fd=folder)
                    continue
                with folder_at(entry.name, folder) as below:
                    most = _empty(below, most)
                os.rmdir(entry.name, dir_fd=folder)
            else:
                os.unlink(entry.name, dir_fd=folder)
    return most


def copy(source: int, target: Path, most: int) -> int:
    """Copy an opened file to a place of ours, at most so many bytes; returns how many."""
    copied = 0
    with target.open("wb") as file:
        while piece := os.read(source, 1 << 20):
            copied += len(piece)
            if copied > most:
                raise NotPlainError(f"it has more than {most} bytes")
            file.write(piece)
    return copied
