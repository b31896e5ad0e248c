"""Legs of one result with the same fingerprint: which of them runs for the others (ruling C5)."""

from collections.abc import Sequence

from workflows.contract.graph import topological
from workflows.contract.models import Delegation


def twins(delegations: Sequence[Delegation]) -> dict[str, str]:
    """Each duplicate with the leg that runs for it, within one result (ruling C5).

    The one that runs is the first in dependency order: whichever else it were, a leg could come to wait for itself.
    """
    by_id = {each.id: each for each in delegations}
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for leg in topological({each.id: each.deps for each in delegations}) or ():
        fingerprint = by_id[leg].fingerprint
        if fingerprint and first.setdefault(fingerprint, leg) != leg:
            found[leg] = first[fingerprint]
    return found
