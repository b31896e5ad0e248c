"""Disk usage of files and folders."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR


def sizes(path: Path) -> Iterator[int]:
    """Yield the size of a file, or of each file below a folder. Links are not followed, and vanished files are
    skipped.
    """
    with suppress(OSError):
        found = path.lstat()
        if S_ISDIR(found.st_mode):
            yield from _in_folders(path)
        else:
            yield found.st_size


def _in_folders(path: Path) -> Iterator[int]:
    """Yield each file's size, and 0 for each folder, so that a caller with a time limit can check the clock."""
    folders = [path]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                    yield 0
                else:
                    with suppress(OSError):
                        yield entry.stat(follow_symlinks=False).st_size
