"""What a failing leg does to its batch (rulings D4 to D8)."""

from collections.abc import Iterable

from workflows.contract.models import FailurePolicy, SynthesisRule
from workflows.tree.state import FAILING, Leg

_BALLOTS = frozenset({SynthesisRule.QUORUM, SynthesisRule.VOTE, SynthesisRule.VERIFY})


def policy_of(leg: Leg) -> FailurePolicy:
    """The policy it was given; without one, a ballot's failure is only an input to its rule (ruling D8)."""
    if leg.failure_policy is not None:
        return leg.failure_policy
    return FailurePolicy.CONTINUE if _BALLOTS.intersection(leg.rules) else FailurePolicy.BLOCK_PARENT


def escalated(legs: Iterable[Leg]) -> bool:
    """A leg that has failed leaves the decision to the coordinator: by its policy, or because it asked (D6, F2)."""
    failed = [leg for leg in legs if leg.state in FAILING and not leg.twin]
    return any(leg.asked or policy_of(leg) is FailurePolicy.ESCALATE for leg in failed)
