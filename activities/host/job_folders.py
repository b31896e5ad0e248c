"""The folders that the folders of jobs are made in, and where on the disk those lie.

ext4 puts a folder beside the one it is made in, files too, and there looks for free places one after another. Without a
journal, as in many small virtual machines, it passes over all that were freed in the last minutes: after some hundred
jobs that took longer than all else a job writes. A flag on a folder tells it that what is made there is not related.
"""

import contextlib
import fcntl
import os
import struct
import sys
from pathlib import Path

from activities.git.own_side import side_of
from activities.settings.home import Home

GET_FLAGS, SET_FLAGS = 0x80086601, 0x40086602
"""Of `ioctl` on Linux, where a long has eight bytes."""

UNRELATED = 0x00020000
"""`chattr +T`: the top of a hierarchy of folders."""


def ready(home: Home) -> None:
    """Make them, and have what is made in them spread over the disk, where the file system knows of that."""
    for folder in (home.runs, home.worktrees, side_of(home.worktrees / "any").parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # another file system, or not our folder: it is as good as it was
            _spread(folder)


def is_spread(folder: Path) -> bool:
    """Whether the file system was told."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return bool(_flags(descriptor) & UNRELATED)
    finally:
        os.close(descriptor)


def _spread(folder: Path) -> None:
    if sys.platform != "linux" or struct.calcsize("l") != 8:
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, SET_FLAGS, struct.pack("l", _flags(descriptor) | UNRELATED))
    finally:
        os.close(descriptor)


def _flags(descriptor: int) -> int:
    return int(struct.unpack("l", fcntl.ioctl(descriptor, GET_FLAGS, bytes(8)))[0])
