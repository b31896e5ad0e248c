"""What an agent claims to have changed beside what the service saw (spec: result observation; ruling I4)."""

from collections.abc import Iterator, Sequence
from typing import Any

from bridge.operations.claims import claims, in_sum

SHOWN = 50


def lines(changes: Sequence[str], seen: dict[str, Any]) -> Iterator[str]:
    """Claim by claim, then what nobody claimed, then the sum."""
    for claim in claims(changes, seen):
        yield f"  {'✔' if claim.observed else '?'} {claim.text}"
        yield f"      {claim.grade}: {claim.evidence}"
    yield from _unclaimed(seen["unclaimed_files"])
    yield f"observed: {in_sum(seen)}"


def _unclaimed(files: Sequence[str]) -> Iterator[str]:
    if files:
        yield "changed without being claimed:"
    yield from (f"  ! {name}" for name in files[:SHOWN])
    if len(files) > SHOWN:
        yield f"  ! and {len(files) - SHOWN} more"
