"""Whether a path leads where those say who own the machine, or where an agent may have sent it by a link.

Root follows every link. What it opens for an agent, to lay it into its box, must not be of the agent's choosing.
"""

import os
import stat
from collections.abc import Callable

MOST_LINKS = 40


class LinkError(OSError):
    """What was to be opened for an agent is not where its path says."""


Status = Callable[[str], os.stat_result]
"""As `os.lstat`."""


def is_firm(path: str, uid: int, status: Status = os.lstat) -> bool:
    """Whether this account can change nothing on the way to what stands there. What is not there is an OSError."""
    left, here, links = path.split("/")[::-1], "", 0
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here).rstrip("/")
            continue
        there = f"{here}/{name}"
        found = status(there)
        if _may_replace(uid, status(here or "/"), found):
            return False
        if not stat.S_ISLNK(found.st_mode):
            here = there
            continue
        links += 1
        if links > MOST_LINKS:
            return False
        target = os.readlink(there)
        left += target.split("/")[::-1]
        here = "" if target.startswith("/") else here
    return True


def require_there(descriptor: int, path: str) -> None:
    """That what was opened stands at its path, and was reached by no link."""
    if os.readlink(f"/proc/self/fd/{descriptor}") != path:
        raise LinkError(f"{path} leads elsewhere by a link, which agents may have made")


def _may_replace(uid: int, folder: os.stat_result, entry: os.stat_result) -> bool:
    """Whether the account may put something else in the place of what stands in a folder."""
    if folder.st_uid == uid:
        return True
    shared = folder.st_mode & stat.S_IWOTH or (folder.st_mode & stat.S_IWGRP and folder.st_gid == uid)
    return bool(shared) and (not folder.st_mode & stat.S_ISVTX or entry.st_uid == uid)
