"""The inputs of the merge gate (ruling L10). Records that people make of their own reviews are not among them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from workflows.contract.models import FailurePolicy, SynthesisRule
from workflows.model.rows import JobRecord, RoundRecord, TaskRecord


class WorkState(StrEnum):
    """Where the work of a job is."""

    NONE = "none"
    """The job has no work: it may not write, wrote nothing, or did not succeed."""
    MERGED = "merged"
    UNMERGED = "unmerged"
    DROPPED = "dropped"
    """An operator dropped the work."""
    GONE = "gone"


class Look(StrEnum):
    """Where the code is that a job looked at for its verdict."""

    HERE = "here"
    """All of that code is in the head."""
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class JobFacts:
    """What the git repository says about a job: whether its work is merged, and which commits it looked at."""

    work: WorkState = WorkState.NONE
    merge: str = ""
    """The command that merges the job's work into the head."""
    conflict: str = ""
    """Why the head lacks the job's work: the part and the files that it conflicts with, in words."""
    look: Look = Look.UNKNOWN
    looked_at: str = ""
    """The commits that the job was given, in words."""
    problem: str = ""
    """The reason why the commits that the job looked at are unknown."""
    unseen: str = ""
    """The commits and files of the head that the job has not seen, in words."""
    replaced: bool = False
    """True if a force push replaced the head of the pull request that the job looked at."""
    look_again: str = ""
    """The command to continue with if the head has changed."""


@dataclass(frozen=True)
class Plan:
    """The rules for a leg, from the result that delegated it."""

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
    """The last review that a person ordered because the tree's own reviews had not seen everything."""

    job: JobRecord
    """The reviewing job, whose decision is the verdict."""
    over: bool
    head: str
    """The commit that the job was asked to review."""
    facts: JobFacts = JobFacts()


@dataclass(frozen=True)
class GateInputs:
    """One tree, and the head to judge. The tree's rows say whether it is done; only then do the other fields count."""

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
