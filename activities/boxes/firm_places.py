"""Whether a path leads where those say who own the machine, or where an agent may have sent it by a link.

Root follows every link. What it opens for an agent, to lay it into its box, must not be of the agent's choosing.
"""

import os
import stat
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

MOST_LINKS = 40
"""As the kernel follows at most on one way."""


class LinkError(OSError):
    """What was to be opened for an agent is not where its path says."""


class Way(NamedTuple):
    """Where a path leads, without the links that only those make who own the machine."""

    end: str
    firm: bool
    """Whether the account of agents can change nothing on it. Otherwise it is followed as if there were no links from
    the first place on that the account may change.
    """


def ways(uid: int) -> Callable[[str], Way]:
    """What finds the ways of paths for this account of agents, and looks at each folder once. What is not there on a
    firm way is an OSError.
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
    """That what was opened stands at the end of its way, and no other link has led to it."""
    if os.readlink(f"/proc/self/fd/{descriptor}") != end:
        raise LinkError(f"{end} leads elsewhere by a link, which agents may have made")


def _may_replace(uid: int, folder: os.stat_result, entry: os.stat_result) -> bool:
    """Whether the account may put something else in the place of what stands in a folder."""
    if folder.st_uid == uid:
        return True
    shared = folder.st_mode & stat.S_IWOTH or (folder.st_mode & stat.S_IWGRP and folder.st_gid == uid)
    return bool(shared) and (not folder.st_mode & stat.S_ISVTX or entry.st_uid == uid)
