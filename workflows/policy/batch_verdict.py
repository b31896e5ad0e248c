"""The verdict on a settled batch (rulings E1 to E4, D6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from workflows.contract.models import Decision, SynthesisRule
from workflows.model.states import JobState

APPROVING = frozenset({Decision.APPROVED, Decision.IMPLEMENTED})


@dataclass(frozen=True)
class Ballot:
    """A leg's part in the rules. A fingerprint duplicate has none (ruling C5)."""

    leg: str
    state: JobState
    decision: Decision | None
    rules: frozenset[SynthesisRule] = frozenset()
    """Its own rules, and those of its fingerprint's duplicates."""
    quorum: int | None = None

    @property
    def has_succeeded(self) -> bool:
        return self.state is JobState.SUCCEEDED

    @property
    def approves(self) -> bool:
        return self.has_succeeded and self.decision in APPROVING


class Result(StrEnum):
    """The next step of the batch."""

    PROCEED = "proceed"
    BLOCK = "block"
    REPLAN = "replan"


@dataclass(frozen=True)
class Verdict:
    """The result and its reason."""

    result: Result
    reason: str = ""


def judge(ballots: Sequence[Ballot], *, overruled: bool = False) -> Verdict:
    """Judge by vote, quorum and verify; the first unmet one decides. Escalations overrule vote and quorum (D6, F3)."""
    rules = frozenset[SynthesisRule]().union(*(ballot.rules for ballot in ballots))
    if not overruled and SynthesisRule.VOTE in rules and (reason := _vote(ballots)):
        return Verdict(Result.BLOCK, reason)
    if not overruled and SynthesisRule.QUORUM in rules and (reason := _quorum(ballots)):
        return Verdict(Result.BLOCK, reason)
    if SynthesisRule.VERIFY in rules and (reason := _verify(ballots)):
        return Verdict(Result.REPLAN, reason)
    return Verdict(Result.PROCEED)


def _vote(ballots: Sequence[Ballot]) -> str:
    """Require that every child succeeded and none requests changes; skipped counts as succeeded (ruling E2)."""
    against = [b.leg for b in ballots if not b.has_succeeded or b.decision is Decision.CHANGES_REQUESTED]
    return f"the vote failed: {', '.join(against)} did not approve" if against else ""


def _quorum(ballots: Sequence[Ballot]) -> str:
    """Require the largest K of the tagged legs, met by any children of the batch (ruling E3)."""
    needed = max((b.quorum or 1 for b in ballots if SynthesisRule.QUORUM in b.rules), default=0)
    approving = sum(b.approves for b in ballots)
    return "" if approving >= needed else f"the quorum was not met: {approving} of the {needed} approvals needed"


def _verify(ballots: Sequence[Ballot]) -> str:
    """Require that every tagged leg that does not abstain approves, and that at least one has a verdict (ruling E4)."""
    tagged = [b for b in ballots if SynthesisRule.VERIFY in b.rules]
    voting = [b for b in tagged if not (b.has_succeeded and b.decision is Decision.SKIPPED)]
    if not any(b.decision is not None or b.state is not JobState.SKIPPED for b in voting):
        return "nothing was verified"
    against = [f"{b.leg} ({b.decision or b.state})" for b in voting if not b.approves]
    return f"verification failed: {', '.join(against)}" if against else ""
