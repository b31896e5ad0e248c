"""All that the merge gate looks at (ruling L10). What people record of reviews of their own is not among it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from workflows.contract.models import FailurePolicy, SynthesisRule
from workflows.model.rows import JobRecord, RoundRecord, TaskRecord


class Work(StrEnum):
    """Where the work of a job is."""

    NONE = "none"
    """It has none: it may not write, wrote nothing, or did not succeed."""
    MERGED = "merged"
    UNMERGED = "unmerged"
    DROPPED = "dropped"
    """An operator did not want it."""
    GONE = "gone"


class Look(StrEnum):
    """What a job had before it when it came to its verdict."""

    HERE = "here"
    """All that is in the head."""
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class JobFacts:
    """What a repository tells of a job."""

    work: Work = Work.NONE
    merge: str = ""
    """The command that brings its work into the head."""
    look: Look = Look.UNKNOWN
    looked_at: str = ""
    """The commits it was given, for people."""
    problem: str = ""
    """Why it is not known what it looked at."""
    look_again: str = ""
    """The command to go on with when the head is another."""


@dataclass(frozen=True)
class Plan:
    """What the delegating result said of a leg."""

    failure_policy: FailurePolicy | None = None
    rules: frozenset[SynthesisRule] = frozenset()
    quorum: int | None = None


@dataclass(frozen=True)
class Head:
    """The commit that is to be merged."""

    name: str
    sha: str | None = None
    problem: str = ""
    """Why there is none, or why it cannot be seen."""
    next: str = ""
    foreign: str = ""
    """What is in it that is not of the tree, in a sentence (ruling O1)."""


@dataclass(frozen=True)
class Seen:
    """One tree, and the head it is judged for. Rows tell whether it is done; the rest counts only then."""

    task: TaskRecord
    jobs: tuple[JobRecord, ...]
    head: Head
    rounds: tuple[RoundRecord, ...] = ()
    """Those that are open, and those that a person ended by `continue`."""
    finalized: str = ""
    """Why the tree was finalized, if it was."""
    facts: Mapping[str, JobFacts] = field(default_factory=dict)
    plans: Mapping[str, Plan] = field(default_factory=dict)
