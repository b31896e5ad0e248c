"""Which names a shared worktree may have (ruling I3): the one rule, for who validates them and who makes them.

A name becomes a folder below the service's worktree root and the end of a branch's name, so that it must be good for
both: for the file system, and for git.
"""

import re

from workflows.contract.strings import BOUNDS

AT_BASE = "@base"
"""The one name that is no worktree's: the leg begins from the base of its tree (ruling O2)."""

RULE = (
    'must be a relative name such as "shared" or "team/api": parts of letters, digits, ".", "_" and "-", each '
    'beginning with a letter or digit, none with ".." in it or ending with "." or ".lock"'
)

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NOT_FOR_GIT = re.compile(r"\.\.|\.\Z|\.lock\Z")


def stays_below(name: str) -> bool:
    """Whether a path of names leads to a place below where it begins, on any file system."""
    return all(_PART.fullmatch(part) for part in name.split("/"))


def worktree_fault(name: str) -> str | None:
    """The rest of the sentence "worktree ..." for what cannot be one."""
    if name == AT_BASE:
        return None
    if len(name) > BOUNDS["worktree"].characters:
        return f"{RULE}, at most {BOUNDS['worktree'].characters} characters in all"
    if not stays_below(name) or any(map(_NOT_FOR_GIT.search, name.split("/"))):
        return RULE
    return None
