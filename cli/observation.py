"""What an agent claims to have changed beside what the service saw (spec: result observation; ruling I4)."""

from collections.abc import Iterator, Sequence
from typing import Any

SHOWN = 50
_WHY_NOT = {
    "basename": "only a file name, which fits {file}",
    "none": "not in the diff",
    "unknown": "the diff was not captured whole",
}


def lines(changes: Sequence[str], seen: dict[str, Any]) -> Iterator[str]:
    """Claim by claim, then what nobody claimed, then the sum. A path in the diff does not prove what is said of it."""
    claims = {claim["index"]: claim for claim in seen["claims"]}
    for index, change in enumerate(changes):
        claim = claims.get(index)
        mark = "✔" if claim and claim["grade"] == "observed" else "?"
        yield f"  {mark} {change}"
        if claim:
            yield f"      {claim['grade']}: {'; '.join(map(_path, claim['paths'])) or 'it names no path'}"
        else:
            yield "      reported: it was not looked at"
    unclaimed = seen["unclaimed_files"]
    if unclaimed:
        yield "changed without being claimed:"
    yield from (f"  ! {name}" for name in unclaimed[:SHOWN])
    if len(unclaimed) > SHOWN:
        yield f"  ! and {len(unclaimed) - SHOWN} more"
    yield _sum(seen)


def _path(binding: dict[str, Any]) -> str:
    if binding["bound"] == "exact":
        return f"{binding['claimed']} is in the diff"
    return f"{binding['claimed']}: {_WHY_NOT[binding['bound']].format(file=binding['file'])}"


def _sum(seen: dict[str, Any]) -> str:
    if not seen["captured"]:
        return "observed: nothing; the worktree could not be read, so every claim is only reported"
    claims = seen["claims"]
    observed = sum(claim["grade"] == "observed" for claim in claims)
    parts = [
        f"{observed} of {len(claims)} claims are in the diff of {len(seen['touched_files'])} file(s)",
        f"{len(seen['claimed_only'])} claimed path(s) are not" if seen["claimed_only"] else "",
        f"{len(seen['unclaimed_files'])} file(s) changed without a claim" if seen["unclaimed_files"] else "",
        "" if seen["complete"] else "there were more files than are kept",
    ]
    return f"observed: {', '.join(part for part in parts if part)}"
