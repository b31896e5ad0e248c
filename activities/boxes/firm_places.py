"""Whether a path leads where those say who own the machine, or where an agent may have sent it by a link.

Root follows every link. What it opens for an agent, to lay it into its box, must not be of the agent's choosing.
"""

import os
import stat
from functools import lru_cache

from activities.boxes import system

MOST_LINKS = 40


class LinkError(OSError):
    """What was to be opened for an agent is not where its path says."""


def is_firm(path: str, uid: int) -> bool:
    """Whether this account can change nothing on the way to what stands there. What is not there is an OSError."""
    return end_of(path, uid, system.moment()) is not None


def require_there(descriptor: int, path: str) -> None:
    """That what was opened stands at its path, and was reached by no link."""
    if os.readlink(f"/proc/self/fd/{descriptor}") != path:
        raise LinkError(f"{path} leads elsewhere by a link, which agents may have made")


@lru_cache(1000)
def end_of(path: str, uid: int, moment: int, links: int = 0) -> str | None:
    """Where a path leads, without any links; None where the account may change that. It is asked once a second for each
    folder: what is firm can be changed by those only who own the machine.
    """
    if not path.strip("/"):
        return "/" if path else None
    around, name = os.path.split(path)
    folder = end_of(around, uid, moment, links)
    if folder is None or name in ("", ".", ".."):
        return os.path.dirname(folder) if folder and name == ".." else folder
    there = os.path.join(folder, name)
    found = os.lstat(there)
    if _may_replace(uid, os.lstat(folder), found) or links > MOST_LINKS:
        return None
    if not stat.S_ISLNK(found.st_mode):
        return there
    return end_of(os.path.join(folder, os.readlink(there)), uid, moment, links + 1)


def _may_replace(uid: int, folder: os.stat_result, entry: os.stat_result) -> bool:
    """Whether the account may put something else in the place of what stands in a folder."""
    if folder.st_uid == uid:
        return True
    shared = folder.st_mode & stat.S_IWOTH or (folder.st_mode & stat.S_IWGRP and folder.st_gid == uid)
    return bool(shared) and (not folder.st_mode & stat.S_ISVTX or entry.st_uid == uid)
