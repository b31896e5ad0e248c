"""The verdict on a settled batch (rulings E1 to E4, D6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from workflows.contract.models import Decision, SynthesisRule
from workflows.model.states import JobState

APPROVING = frozenset({Decision.APPROVED, Decision.IMPLEMENTED})


@dataclass(frozen=True)
class Ballot:
    """A leg's part in the synthesis rules. A leg that is a duplicate by fingerprint has none (ruling C5)."""

    leg: str
    state: JobState
    decision: Decision | None
    rules: frozenset[SynthesisRule] = frozenset()
    """The leg's own rules, and those of its duplicates."""
    quorum: int | None = None

    @property
    def has_succeeded(self) -> bool:
        return self.state is JobState.SUCCEEDED

    @property
    def approves(self) -> bool:
        return self.has_succeeded and self.decision in APPROVING


class Result(StrEnum):
    """What follows a settled batch."""

    PROCEED = "proceed"
    BLOCK = "block"
    REPLAN = "replan"


@dataclass(frozen=True)
class Verdict:
    """What follows a settled batch, and why."""

    result: Result
    reason: str = ""


def judge(ballots: Sequence[Ballot], *, overruled: bool = False) -> Verdict:
    """Apply vote, quorum and verify; the first rule that is not met decides. With `overruled`, vote and quorum pass: a
    person or the coordinator decides on the failures (D6, F3).
    """
    rules = frozenset[SynthesisRule]().union(*(ballot.rules for ballot in ballots))
    if not overruled and SynthesisRule.VOTE in rules and (reason := _vote(ballots)):
        return Verdict(Result.BLOCK, reason)
    if not overruled and SynthesisRule.QUORUM in rules and (reason := _quorum(ballots)):
        return Verdict(Result.BLOCK, reason)
    if SynthesisRule.VERIFY in rules and (reason := _verify(ballots)):
        return Verdict(Result.REPLAN, reason)
    return Verdict(Result.PROCEED)


def _vote(ballots: Sequence[Ballot]) -> str:
    """Return why the vote fails, or "". Every child must have succeeded, and none may request changes; skipped counts
    as succeeded (ruling E2).
    """
    against = [b.leg for b in ballots if not b.has_succeeded or b.decision is Decision.CHANGES_REQUESTED]
    return f"the vote failed: {', '.join(against)} did not approve" if against else ""


def _quorum(ballots: Sequence[Ballot]) -> str:
    """Return why the quorum fails, or "". The largest K of the tagged legs counts, and any children of the batch may
    meet it (ruling E3).
    """
    needed = max((b.quorum or 1 for b in ballots if SynthesisRule.QUORUM in b.rules), default=0)
    approving = sum(b.approves for b in ballots)
    return "" if approving >= needed else f"the quorum was not met: {approving} of the {needed} approvals needed"


def _verify(ballots: Sequence[Ballot]) -> str:
    """Return why the verify rule fails, or "". Every tagged leg that does not abstain must approve, and at least one
    must have a verdict (ruling E4).
    """
    tagged = [b for b in ballots if SynthesisRule.VERIFY in b.rules]
    voting = [b for b in tagged if not (b.has_succeeded and b.decision is Decision.SKIPPED)]
    if not any(b.decision is not None or b.state is not JobState.SKIPPED for b in voting):
        return "nothing was verified"
    against = [f"{b.leg} ({b.decision or b.state})" for b in voting if not b.approves]
    return f"verification failed: {', '.join(against)}" if against else ""
