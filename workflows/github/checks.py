"""Which commits and trees the check of a pull request is about (ruling L10)."""

import re
from collections.abc import Collection, Iterable

from workflows.contract.models import Action

_QUEUED = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-(\d+)-[0-9a-f]+")
"""How a merge queue names the commit it wants checked."""


def queued_number(ref: str) -> int | None:
    """The pull request whose merge is tried under this name; None for every other branch."""
    found = _QUEUED.fullmatch(ref)
    return int(found[1]) if found else None


def deciding(trees: Iterable[tuple[str, Collection[Action]]]) -> str | None:
    """Of several trees, the newest first, each with what its jobs do: the newest that works or reviews.

    A question that was asked later says nothing of a merge; where there are only questions, the newest.
    """
    newest = None
    for root, actions in trees:
        newest = newest or root
        if any(action is not Action.ASK for action in actions):
            return root
    return newest
