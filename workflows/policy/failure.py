"""What a failing leg does to its batch (rulings D4 to D8)."""

from workflows.contract.models import FailurePolicy, SynthesisRule
from workflows.tree.state import Leg

_BALLOTS = frozenset({SynthesisRule.QUORUM, SynthesisRule.VOTE, SynthesisRule.VERIFY})


def policy_of(leg: Leg) -> FailurePolicy:
    """The policy it was given; without one, a ballot's failure is only an input to its rule (ruling D8)."""
    if leg.failure_policy is not None:
        return leg.failure_policy
    return FailurePolicy.CONTINUE if leg.synthesis_rule in _BALLOTS else FailurePolicy.BLOCK_PARENT
