"""What files and folders take on the disk."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR


def sizes(path: Path) -> Iterator[int]:
    """Of a file, or of each file and folder below; no link is followed. What is gone by now counts nothing."""
    with suppress(OSError):
        found = path.lstat()
        if S_ISDIR(found.st_mode):
            yield from _in_folders(path)
        else:
            yield found.st_size


def _in_folders(path: Path) -> Iterator[int]:
    """A folder counts nothing itself, but is told: who measures for a time looks at the clock then."""
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
