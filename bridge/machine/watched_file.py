"""A small file that others replace: read again only when it was replaced."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from activities.runs.regular_files import opened

T = TypeVar("T")


class WatchedFile(Generic[T]):
    """What a file of this account says now; None when it is not there, or is a link.

    A look costs a `stat`, which does not wait for a disk.
    """

    def __init__(self, path: Path, read: Callable[[bytes], T]) -> None:
        self._path, self._read = path, read
        self._seen: tuple[int, int, int] | None = None
        self._value: T | None = None

    def value(self) -> T | None:
        """The file's meaning as of this moment."""
        try:
            now = os.stat(self._path)
            seen = (now.st_ino, now.st_mtime_ns, now.st_size)
            if seen != self._seen:
                with opened(self._path) as file:
                    self._value, self._seen = self._read(file.read()), seen
        except OSError:
            self._value = self._seen = None
        return self._value
