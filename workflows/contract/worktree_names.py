"""Valid names of shared worktrees (ruling I3): one rule for validation and creation.

A name becomes a folder below the service's worktree root and the end of a branch's name, so it must be valid for both
the file system and git.
"""

import re

from workflows.contract.size_limits import BOUNDS

AT_BASE = "@base"
"""A reserved name: the leg starts from the base of its tree (ruling O2)."""

MERGE = "@merge:"
"""A reserved prefix: the leg starts with a begun merge of the leg named after the prefix (ruling O6)."""

RULE = (
    'must be a relative name such as "shared" or "team/api": parts of letters, digits, ".", "_" and "-", each '
    'beginning with a letter or digit, none with ".." in it or ending with "." or ".lock"'
)

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LEG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NOT_FOR_GIT = re.compile(r"\.\.|\.\Z|\.lock\Z")


def merged_leg(name: object) -> str:
    """Return the leg that `@merge:LEG` names; empty for any other name."""
    return name.removeprefix(MERGE) if isinstance(name, str) and name.startswith(MERGE) else ""


def stays_below(name: str) -> bool:
    """Return whether a relative path stays inside its start folder on any file system."""
    return all(_PART.fullmatch(part) for part in name.split("/"))


def worktree_fault(name: str) -> str | None:
    """Return what completes the sentence "worktree ..." for an invalid name, else None."""
    if name == AT_BASE or _LEG.fullmatch(merged_leg(name)):
        return None
    if name.startswith("@"):
        return f'is not known: "{AT_BASE}" and "{MERGE}LEG" (the id of a leg that is not on the line) begin with "@"'
    if len(name) > BOUNDS["worktree"].characters:
        return f"{RULE}, at most {BOUNDS['worktree'].characters} characters in all"
    if not stays_below(name) or any(map(_NOT_FOR_GIT.search, name.split("/"))):
        return RULE
    return None
