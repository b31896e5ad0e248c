"""The inputs of the merge gate (ruling L10). People's records of their own reviews are not among them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from workflows.contract.models import FailurePolicy, SynthesisRule
from workflows.model.rows import JobRecord, RoundRecord, TaskRecord


class WorkState(StrEnum):
    """The place of a job's work."""

    NONE = "none"
    """The job has no work: it may not write, wrote nothing, or did not succeed."""
    MERGED = "merged"
    UNMERGED = "unmerged"
    DROPPED = "dropped"
    """An operator dropped it."""
    GONE = "gone"


class Look(StrEnum):
    """The code a job looked at for its verdict."""

    HERE = "here"
    """All of the work is in the head."""
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class JobFacts:
    """Facts about a job from the repository."""

    work: WorkState = WorkState.NONE
    merge: str = ""
    """The command that brings its work into the head."""
    look: Look = Look.UNKNOWN
    looked_at: str = ""
    """The commits it was given, for people."""
    problem: str = ""
    """The reason why the commits that the job looked at are unknown."""
    unseen: str = ""
    """The commits and files of the head that it has not seen, for people."""
    replaced: bool = False
    """True if the head of its pull request that it looked at was replaced: a force push."""
    look_again: str = ""
    """The command to continue with if the head has changed."""


@dataclass(frozen=True)
class Plan:
    """The delegating result's rules for a leg."""

    failure_policy: FailurePolicy | None = None
    rules: frozenset[SynthesisRule] = frozenset()
    quorum: int | None = None


@dataclass(frozen=True)
class Head:
    """The commit to be merged."""

    name: str
    sha: str | None = None
    problem: str = ""
    """The reason the head is missing or unreadable."""
    next: str = ""
    hidden: bool = False
    """True if this host cannot see whether there is a head."""
    foreign: str = ""
    """A sentence about commits in the head that are not of the tree (ruling O1)."""


@dataclass(frozen=True)
class LaterReview:
    """The last review that a person asked for of what the tree's own reviews have not seen."""

    job: JobRecord
    """The job with its verdict."""
    over: bool
    head: str
    """The commit that the job was asked to review."""
    facts: JobFacts = JobFacts()


@dataclass(frozen=True)
class GateInputs:
    """One tree, and the head it is judged for. Its rows decide whether it is done; the rest counts only then."""

    task: TaskRecord
    jobs: tuple[JobRecord, ...]
    head: Head
    rounds: tuple[RoundRecord, ...] = ()
    """Open rounds, and rounds that a person ended by `continue`."""
    finalized: str = ""
    """The reason the tree was finalized, if it was."""
    facts: Mapping[str, JobFacts] = field(default_factory=dict)
    plans: Mapping[str, Plan] = field(default_factory=dict)
    later: LaterReview | None = None
