"""Handing files to the account of agents, and back: when the service is root and its agents are not."""

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path


def hand_over(paths: Iterable[Path], uid: int) -> None:
    """Everything in these folders belongs to the account from here on. No link is followed, no other disk entered.

    A file with a second name somewhere is left as it is: it may not be of this folder alone.
    """
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            _own(path, uid)


def _own(top: Path, uid: int) -> None:
    device = top.lstat().st_dev
    os.chown(top, uid, uid, follow_symlinks=False)
    if top.is_symlink() or not top.is_dir():
        return
    for _, folders, files, at in os.fwalk(top, follow_symlinks=False):
        elsewhere = []
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                seen = os.stat(name, dir_fd=at, follow_symlinks=False)
                if seen.st_dev != device:
                    elsewhere.append(name)
                elif (seen.st_uid, seen.st_gid) != (uid, uid) and (seen.st_nlink == 1 or stat.S_ISDIR(seen.st_mode)):
                    os.chown(name, uid, uid, dir_fd=at, follow_symlinks=False)
        folders[:] = [name for name in folders if name not in elsewhere]
