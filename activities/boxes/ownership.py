"""Hand files to the account of agents, and back: for a service that is root while its agents are not.

Root follows every link, so an agent's link could make root open or mount any file for it: `ways` finds paths that an
agent may have redirected.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

MOST_LINKS = 40
"""The most links that the kernel follows on one path."""


class LinkError(OSError):
    """A path that was opened for an agent leads elsewhere than it says."""


class Way(NamedTuple):
    """A path resolved by following only links that agents can't have made."""

    end: str
    firm: bool
    """True if the account of agents can change no folder on the path. Otherwise no link is followed behind the first
    folder that the account may change.
    """


def ways(uid: int) -> Callable[[str], Way]:
    """Return a resolver of paths for the account of agents, which caches each folder. It raises OSError for missing
    paths.
    """

    @cache
    def way(path: str, links: int = 0) -> Way:
        if not path.strip("/"):
            return Way("/", firm=path != "")
        around, name = os.path.split(path)
        folder, firm = way(around, links)
        if name in ("", ".", ".."):
            return Way(os.path.dirname(folder) if name == ".." else folder, firm)
        there = os.path.join(folder, name)
        if not firm or _may_replace(uid, os.lstat(folder), status := os.lstat(there)):
            return Way(there, firm=False)
        if not stat.S_ISLNK(status.st_mode):
            return Way(there, firm=True)
        if links == MOST_LINKS:
            return Way(there, firm=False)
        return way(os.path.join(folder, os.readlink(there)), links + 1)

    return way


def require(descriptor: int, end: str) -> None:
    """Raise LinkError unless the open file is at the path `end`."""
    if os.readlink(f"/proc/self/fd/{descriptor}") != end:
        raise LinkError(f"{end} leads elsewhere by a link, which agents may have made")


def _may_replace(uid: int, folder: os.stat_result, entry: os.stat_result) -> bool:
    """Return whether the account may replace an entry of a folder."""
    if folder.st_uid == uid:
        return True
    shared = folder.st_mode & stat.S_IWOTH or (folder.st_mode & stat.S_IWGRP and folder.st_gid == uid)
    return bool(shared) and (not folder.st_mode & stat.S_ISVTX or entry.st_uid == uid)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


MOST_LEVELS = 400
"""Depth of nested folders; files below it keep their owner."""


def hand_over(paths: Iterable[Path], uid: int, *, within: bool = True) -> None:
    """Give these folders to the account: with all their content, or without if `within` is False.

    Follow no link and enter no other disk. Raise LinkError for a link on the way that agents may have made. Skip files
    with a second hard link: they may not belong to this folder alone.
    """
    way = ways(uid) if uid else None  # what goes back to root is in folders of the service
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            _own(path, uid, way(str(path.parent)).end if way else None, within=within)


def let_read(paths: Iterable[Path], uid: int) -> None:
    """Let only the account's group read these paths and all in them. Links in them are not followed.

    Files that every account may read stay as they are. Use it only for folders that agents can't write.
    """
    for path in paths:
        _let_read(path.resolve(), uid)
        for around, folders, files in os.walk(path):
            for name in (*folders, *files):
                _let_read(Path(around, name), uid)


def _let_read(path: Path, uid: int) -> None:
    status = path.lstat()
    is_folder = stat.S_ISDIR(status.st_mode)
    if not (is_folder or stat.S_ISREG(status.st_mode)) or status.st_mode & stat.S_IROTH:
        return
    os.chown(path, -1, uid, follow_symlinks=False)
    own = stat.S_IMODE(status.st_mode) & stat.S_IRWXU
    path.chmod(own | stat.S_IRGRP | (own & stat.S_IXUSR) >> 3)


def _own(top: Path, uid: int, folder: str | None, *, within: bool) -> None:
    """Change the owner of `top` and, if `within`, of all in it. With `folder`, raise LinkError unless that is the real
    parent of `top`.
    """
    around = os.open(top.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if folder is not None:
            require(around, folder)
        status = os.stat(top.name, dir_fd=around, follow_symlinks=False)
        os.chown(top.name, uid, uid, dir_fd=around, follow_symlinks=False)
        inner = os.open(top.name, _FOLDER, dir_fd=around) if within and stat.S_ISDIR(status.st_mode) else None
    finally:
        os.close(around)
    if inner is not None:
        _own_below(inner, uid, status.st_dev, MOST_LEVELS)


def _own_below(folder: int, uid: int, device: int, levels: int) -> None:
    """Change the owner of all in an open folder, down to `levels`; close it."""
    try:
        with os.scandir(folder) as listing:
            for entry in listing:
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    is_folder = stat.S_ISDIR(status.st_mode)
                    if status.st_dev != device:
                        continue
                    if (status.st_uid, status.st_gid) != (uid, uid) and (status.st_nlink == 1 or is_folder):
                        os.chown(entry.name, uid, uid, dir_fd=folder, follow_symlinks=False)
                    if is_folder and levels:
                        _own_below(os.open(entry.name, _FOLDER, dir_fd=folder), uid, device, levels - 1)
    finally:
        os.close(folder)
