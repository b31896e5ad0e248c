"""The commits and trees a pull request's check covers (ruling L10)."""

import re
from collections.abc import Collection, Iterable

from workflows.contract.models import Action

_QUEUED = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-(\d+)-[0-9a-f]+")
"""The ref of a merge queue's candidate commit."""


def queued_number(ref: str) -> int | None:
    """Return the pull request of a merge queue's ref; None for every other branch."""
    found = _QUEUED.fullmatch(ref)
    return int(found[1]) if found else None


def deciding(trees: Iterable[tuple[str, Collection[Action]]]) -> str | None:
    """Return the root of the newest tree that works or reviews; if there are only questions, the newest tree's.

    The trees are ordered newest first, each with its jobs' actions. A question asked later says nothing about a merge.
    """
    newest = None
    for root, actions in trees:
        newest = newest or root
        if any(action is not Action.ASK for action in actions):
            return root
    return newest
