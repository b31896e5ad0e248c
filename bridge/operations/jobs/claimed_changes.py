"""The changes an agent claims, compared with the diff (spec: result observation; ruling I4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workflows.text.plurals import quantity

_WHY_NOT = {
    "basename": "only a file name, which fits {file}",
    "none": "not in the diff",
    "unknown": "the diff was not captured whole",
}


@dataclass(frozen=True)
class GradedClaim:
    """A claimed change with its evidence. That a path is in the diff does not prove the claim's text."""

    text: str
    grade: str
    evidence: str
    """The change of each path that the claim names, according to the diff."""

    @property
    def is_observed(self) -> bool:
        return self.grade == "observed"


def claims(changes: Sequence[str], seen: dict[str, Any]) -> list[GradedClaim]:
    """Return each claim with its evidence."""
    graded = {claim["index"]: claim for claim in seen["claims"]}
    return [_claim(change, graded.get(index)) for index, change in enumerate(changes)]


def _claim(change: str, graded: dict[str, Any] | None) -> GradedClaim:
    if graded is None:
        return GradedClaim(change, "reported", "it was not checked")
    return GradedClaim(change, graded["grade"], "; ".join(map(_path, graded["paths"])) or "it names no path")


def _path(binding: dict[str, Any]) -> str:
    if binding["bound"] == "exact":
        return f"{binding['claimed']} is in the diff"
    return f"{binding['claimed']}: {_WHY_NOT[binding['bound']].format(file=binding['file'])}"


def in_sum(seen: dict[str, Any]) -> str:
    """Summarize in a sentence how many claims the diff confirms."""
    if not seen["captured"]:
        return "nothing; the worktree could not be read, so every claim is only reported"
    graded = seen["claims"]
    if seen["complete"] and not seen["touched_files"]:
        return f"it changed nothing{', whatever it claims' if graded else ''}"
    observed = sum(claim["grade"] == "observed" for claim in graded)
    missing, more = seen["claimed_only"], seen["unclaimed_files"]
    if not graded:
        first = "the report names no change"
    elif observed == len(graded):
        first = "the report matches the diff"
    else:
        first = f"the diff shows {observed} of {quantity(len(graded), 'reported change')}"
    parts = [
        first,
        f"{quantity(len(missing), 'reported file')} did not change" if missing else "",
        f"{len(more)} more {'file' if len(more) == 1 else 'files'} changed" if more else "",
        "" if seen["complete"] else "there were more files than are kept",
    ]
    return "; ".join(part for part in parts if part)


def entry(entry: Any) -> str:
    """Format an entry of one of the result's lists, a text or an object, as one line."""
    if isinstance(entry, dict):
        return ", ".join(f"{key}: {value}" for key, value in entry.items())
    return str(entry)
