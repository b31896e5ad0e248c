"""Duplicate legs of one result, by fingerprint (ruling C5)."""

from collections.abc import Sequence

from workflows.contract.graph import topological
from workflows.contract.models import Delegation


def twins(delegations: Sequence[Delegation]) -> dict[str, str]:
    """Return each duplicate with the leg that runs for it, within one result (ruling C5).

    The first in dependency order runs: with any other, a leg could end up waiting for itself.
    """
    by_id = {each.id: each for each in delegations}
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for leg in topological({each.id: each.deps for each in delegations}) or ():
        fingerprint = by_id[leg].fingerprint
        if fingerprint and first.setdefault(fingerprint, leg) != leg:
            found[leg] = first[fingerprint]
    return found
