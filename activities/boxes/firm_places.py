"""Detection of paths that an agent may have redirected by a link.

Root follows every link. The agent must not choose what root opens for it and mounts into its box.
"""

import os
import stat
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

MOST_LINKS = 40
"""The most links that the kernel follows on one path."""


class LinkError(OSError):
    """A path that was opened for an agent leads elsewhere than it says."""


class Way(NamedTuple):
    """The end of a path, after resolving only the links that the machine's owners made."""

    end: str
    firm: bool
    """True if the account of agents can change nothing on it. Otherwise links are not followed from the first place
    on that the account may change.
    """


def ways(uid: int) -> Callable[[str], Way]:
    """Return a function that resolves paths for this account of agents, and checks each folder once. It raises
    OSError if a path does not exist on a firm way.
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
        if not firm or _may_replace(uid, os.lstat(folder), found := os.lstat(there)):
            return Way(there, firm=False)
        if not stat.S_ISLNK(found.st_mode):
            return Way(there, firm=True)
        if links == MOST_LINKS:
            return Way(there, firm=False)
        return way(os.path.join(folder, os.readlink(there)), links + 1)

    return way


def require(descriptor: int, end: str) -> None:
    """Raise LinkError unless the open file is at the end of its way."""
    if os.readlink(f"/proc/self/fd/{descriptor}") != end:
        raise LinkError(f"{end} leads elsewhere by a link, which agents may have made")


def _may_replace(uid: int, folder: os.stat_result, entry: os.stat_result) -> bool:
    """Return whether the account may replace an entry of a folder."""
    if folder.st_uid == uid:
        return True
    shared = folder.st_mode & stat.S_IWOTH or (folder.st_mode & stat.S_IWGRP and folder.st_gid == uid)
    return bool(shared) and (not folder.st_mode & stat.S_ISVTX or entry.st_uid == uid)
