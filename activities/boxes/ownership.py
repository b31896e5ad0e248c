"""Handing files to the account of agents, and back: when the service is root and its agents are not."""

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def hand_over(paths: Iterable[Path], uid: int, *, within: bool = True) -> None:
    """These folders belong to the account from here on, and so does everything in them unless `within` is False. No
    link is followed, no other disk entered.

    A file with a second name somewhere is left as it is: it may not be of this folder alone.
    """
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            _own(path, uid, within=within)


def _own(top: Path, uid: int, *, within: bool) -> None:
    found = top.lstat()
    os.chown(top, uid, uid, follow_symlinks=False)
    if within and stat.S_ISDIR(found.st_mode):
        _own_below(os.open(top, _FOLDER), uid, found.st_dev)


def _own_below(folder: int, uid: int, device: int) -> None:
    """All that is in an opened folder, which is closed."""
    try:
        with os.scandir(folder) as listing:
            for entry in listing:
                with contextlib.suppress(FileNotFoundError):
                    seen = entry.stat(follow_symlinks=False)
                    is_folder = stat.S_ISDIR(seen.st_mode)
                    if seen.st_dev != device:
                        continue
                    if (seen.st_uid, seen.st_gid) != (uid, uid) and (seen.st_nlink == 1 or is_folder):
                        os.chown(entry.name, uid, uid, dir_fd=folder, follow_symlinks=False)
                    if is_folder:
                        _own_below(os.open(entry.name, _FOLDER, dir_fd=folder), uid, device)
    finally:
        os.close(folder)
