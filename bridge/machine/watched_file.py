"""A small file that other processes replace: read again only after a replacement."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from activities.runs.regular_files import open_to_read

T = TypeVar("T")


class WatchedFile(Generic[T]):
    """The parsed content of a file of this account; None if it is missing or a link.

    A check costs one `stat`, which does not wait for a disk.
    """

    def __init__(self, path: Path, read: Callable[[bytes], T]) -> None:
        self._path, self._read = path, read
        self._seen: tuple[int, int, int] | None = None
        self._value: T | None = None

    def value(self) -> T | None:
        """Return the current content."""
        try:
            now = os.stat(self._path)
            seen = (now.st_ino, now.st_mtime_ns, now.st_size)
            if seen != self._seen:
                with open_to_read(self._path) as file:
                    self._value, self._seen = self._read(file.read()), seen
        except OSError:
            self._value = self._seen = None
        return self._value
