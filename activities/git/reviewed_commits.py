"""Checks that somebody who looked at some commits has seen all of a head (ruling L10)."""

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from activities.git.command import git

_AS_THEY_ARE = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
"""Ignore replacements and grafts: an agent can write both into the repository to change a commit's parents or
content.
"""

MOST = 500
"""The most commits, all of them merges, that a head may have beyond the seen ones: merging legs never makes more."""


@lru_cache(maxsize=1024)
def saw_all(repo: Path, head: str, seen: tuple[str, ...]) -> bool:
    """Return whether the head consists of the seen commits only, and at most merges of them that git makes by itself.

    Runs two processes of git, three if there are such merges. Commits do not change, so answers are cached. A missing
    commit raises GitError: it may have been removed since.
    """
    if set(seen) == {head}:
        return bool(git(repo, "rev-parse", "--verify", "--end-of-options", f"{head}^{{commit}}"))
    if _listed(repo, "--max-count=1", seen, (head,)):
        return False
    beyond = _listed(repo, f"--max-count={MOST}", (head,), seen)
    two_parents = len(beyond) < MOST and all(len(line.split()) == 3 for line in beyond)
    return two_parents and not (beyond and _changed_by_hand(repo, head, seen))


@lru_cache(maxsize=1024)
def holds(repo: Path, head: str, commit: str) -> bool:
    """Return whether the head contains the commit."""
    return not _listed(repo, "--max-count=1", (commit,), (head,))


def _listed(repo: Path, most: str, inside: Sequence[str], outside: Sequence[str]) -> list[str]:
    """List the commits reachable from `inside` but not from `outside`, each with its parents."""
    said = git(repo, "rev-list", "--parents", most, "--stdin", stdin=_revisions(inside, outside), env=_AS_THEY_ARE)
    return said.decode().splitlines()


def _changed_by_hand(repo: Path, head: str, seen: Sequence[str]) -> bool:
    """Return whether a merge differs from git's own merge of its parents: a conflict resolved, a side left out, a line
    added.

    `--cc` would not show a merge that takes one side whole.
    """
    options = ("--merges", "--remerge-diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
    said = git(repo, "log", "--format=", *options, "--stdin", stdin=_revisions((head,), seen), env=_AS_THEY_ARE)
    return bool(said.strip())


def _revisions(inside: Sequence[str], outside: Sequence[str]) -> bytes:
    return "".join([*(f"{each}\n" for each in inside), *(f"^{each}\n" for each in outside)]).encode()
