"""An agent's claimed changes beside the observed ones (spec: result observation; ruling I4)."""

from collections.abc import Iterator, Sequence
from typing import Any

from bridge.operations.jobs.claims import claims, in_sum
from cli.drawing.lines import prose

SHOWN = 50


def lines(changes: Sequence[str], seen: dict[str, Any]) -> Iterator[str]:
    """Yield each claim, then unclaimed changes, then the summary."""
    for claim in claims(changes, seen):
        yield prose(f"  {'✔' if claim.observed else '?'} {claim.text}")
        yield prose(f"      {claim.grade}: {claim.evidence}")
    unclaimed = seen["unclaimed_files"]
    if unclaimed:
        yield "changed without being claimed:"
    yield from (f"  ! {name}" for name in unclaimed[:SHOWN])
    if len(unclaimed) > SHOWN:
        yield f"  ! and {len(unclaimed) - SHOWN} more"
    yield prose(f"observed: {in_sum(seen)}")
