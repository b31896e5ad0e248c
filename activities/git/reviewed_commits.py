"""Check whether the commits that somebody has seen are all commits of a head (ruling L10)."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from activities.git.command import all_printable, git

_AS_THEY_ARE = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
"""Ignore replacements and grafts: an agent can write both into the repository to change a commit's parents or
content.
"""

SHOWN = 3
"""Files that a sentence names."""
_COMMIT = "\x02"

MOST = 500
"""The most commits, all of them merges, that a head may have beyond the seen ones: merging legs never makes more."""


@lru_cache(maxsize=1024)
def saw_all(repo: Path, head: str, seen: tuple[str, ...]) -> bool:
    """Return whether the head consists of the seen commits only, and at most merges of them that git makes by itself.

    Runs two processes of git, three if there are such merges. Commits do not change, so answers are cached. A commit
    that is missing, since it was removed, raises GitError.
    """
    if set(seen) == {head}:
        return bool(git(repo, "rev-parse", "--verify", "--end-of-options", f"{head}^{{commit}}"))
    if _list_commits(repo, "--max-count=1", seen, (head,)):
        return False
    beyond = _list_commits(repo, f"--max-count={MOST}", (head,), seen)
    two_parents = len(beyond) < MOST and all(len(line.split()) == 3 for line in beyond)
    return two_parents and not (beyond and _changed_by_hand(repo, head, seen))


@dataclass(frozen=True)
class Unseen:
    """The unseen commits of a head, newest first, each with its subject; and the files they change."""

    commits: tuple[str, ...]
    files: tuple[str, ...]

    def __str__(self) -> str:
        if not self.commits:
            return ""
        count, files = len(self.commits), ", ".join(self.files[:SHOWN])
        more = f" and {len(self.files) - SHOWN} more" if len(self.files) > SHOWN else ""
        commits = f"{count} commit{'' if count == 1 else 's'}{' or more' if count == MOST else ''}"
        return f"{commits} in {files}{more}" if files else commits


@lru_cache(maxsize=256)
def unseen(repo: Path, head: str, seen: tuple[str, ...]) -> Unseen:
    """Return the commits of a head that are not in `seen`. Leave out commits that change no file, such as clean
    merges.
    """
    options = ("--remerge-diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
    form = ("log", f"--max-count={MOST}", "-z", "--format=%x02%h %s")
    log = git(repo, *form, *options, "--stdin", stdin=_revisions((head,), seen), env=_AS_THEY_ARE)
    changed: dict[str, list[str]] = {}
    for piece in log.decode(errors="backslashreplace").split("\0"):
        if piece.startswith(_COMMIT):
            changed[piece.removeprefix(_COMMIT)] = []
        elif name := piece.strip("\n"):
            [*changed.values()][-1].append(name)
    files = sorted({file for names in changed.values() for file in names})
    return Unseen(tuple(commit for commit, names in changed.items() if names), tuple(all_printable(files)))


@lru_cache(maxsize=1024)
def holds(repo: Path, head: str, commit: str) -> bool:
    """Return whether the head contains the commit."""
    return not _list_commits(repo, "--max-count=1", (commit,), (head,))


def _list_commits(repo: Path, most: str, inside: Sequence[str], outside: Sequence[str]) -> list[str]:
    """List the commits reachable from `inside` but not from `outside`, each with its parents."""
    listing = git(repo, "rev-list", "--parents", most, "--stdin", stdin=_revisions(inside, outside), env=_AS_THEY_ARE)
    return listing.decode().splitlines()


def _changed_by_hand(repo: Path, head: str, seen: Sequence[str]) -> bool:
    """Return whether a merge differs from git's own merge of its parents, for example by a resolved conflict or an
    added line.

    `--cc` would not show a merge that takes one side whole.
    """
    options = ("--merges", "--remerge-diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv")
    log = git(repo, "log", "--format=", *options, "--stdin", stdin=_revisions((head,), seen), env=_AS_THEY_ARE)
    return bool(log.strip())


def _revisions(inside: Sequence[str], outside: Sequence[str]) -> bytes:
    return "".join([*(f"{each}\n" for each in inside), *(f"^{each}\n" for each in outside)]).encode()
