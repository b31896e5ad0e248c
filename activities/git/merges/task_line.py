"""The line of a coordinator's chain: its base with the chain's work merged on, except for conflicting branches (O2,
O3).

It is made in the object store. Merging the same commits gives the same line.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from activities.git.git_branches import commit, contains
from activities.git.merges.into_work_folder import MergeConflict, merge_one
from workflows.policy.reference_names import BASE, LINE, leg_reference


@dataclass(frozen=True)
class LinePart:
    """A branch that belongs on the line, with its leg, job and commit."""

    leg: str
    job_id: str
    branch: str
    commit: str


@dataclass(frozen=True)
class LeftOutBranch:
    """A branch that is not on the line because it conflicts with the line. If it lists no files, its commits are
    missing here.
    """

    leg: str
    branch: str
    commit: str
    against: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskLine:
    """The commit that a job begins from, and the legs merged into it."""

    base: str
    """The base of the tree."""
    commit: str
    merged: tuple[str, ...] = ()
    """The legs whose work is on the line, in order."""
    left_out: tuple[LeftOutBranch, ...] = ()
    legs: dict[str, str] = field(default_factory=dict)
    """The commit of each leg's work, on the line or not."""
    people: bool = False
    """True if the line includes commits that people put on the task's branch."""

    @property
    def names(self) -> dict[str, str]:
        """Return the extra branches of a job's repository (ruling O4)."""
        return {BASE: self.base, LINE: self.commit} | {leg_reference(leg): end for leg, end in self.legs.items()}


def draw(repo: Path, base: str, start: str, parts: Sequence[LinePart], given: Sequence[LinePart] = ()) -> TaskLine:
    """Merge the parts onto the start. Legs in `given` are not merged, but get a branch name.

    A part that conflicts counts as merged if a later part contains it.
    """
    end, left_out = _merge_parts(repo, start, parts)
    out = {(each.leg, each.branch) for each in left_out}
    merged = dict.fromkeys(each.leg for each in parts if each.leg and (each.leg, each.branch) not in out)
    latest = {each.leg: each.job_id for each in (*parts, *given) if each.leg}
    legs = {}
    for leg, job_id in latest.items():
        own = [each for each in (*parts, *given) if (each.leg, each.job_id) == (leg, job_id)]
        if any(commit(repo, each.commit) for each in own):
            legs[leg] = _merge_parts(repo, base, own)[0]
    return TaskLine(base, end, tuple(merged), tuple(left_out), legs)


def _merge_parts(repo: Path, start: str, parts: Sequence[LinePart]) -> tuple[str, list[LeftOutBranch]]:
    end, done, left_out = start, list[tuple[str, str]](), list[LeftOutBranch]()
    for part in parts:
        if commit(repo, part.commit) is None:
            left_out.append(LeftOutBranch(part.leg, part.branch, part.commit))
            continue
        try:
            end = merge_one(repo, start, end, part.branch, part.commit, done)
            done.append((part.branch, part.commit))
        except MergeConflict as conflict:
            left_out.append(LeftOutBranch(part.leg, part.branch, part.commit, conflict.against, conflict.files))
    return end, [each for each in left_out if not (each.files and contains(repo, end, each.commit))]
