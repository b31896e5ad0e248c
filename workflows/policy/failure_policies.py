"""The consequences of a leg's failure policy (spec: failure policies; rulings D4, D6, D8).

To add a policy, extend these functions and `_meet_policy` of `workflows/tree/job_end.py`; mypy names each function that
misses it.
"""

from workflows.contract.models import FailurePolicy


def stops_batch(policy: FailurePolicy) -> bool:
    """Return whether a failing leg stops its batch, so that no more of its legs start (ruling D4)."""
    match policy:
        case FailurePolicy.BLOCK_PARENT:
            return True
        case FailurePolicy.CONTINUE | FailurePolicy.ESCALATE | FailurePolicy.ESCALATE_HUMAN:
            return False


def leaves_decision(policy: FailurePolicy) -> bool:
    """Return whether the coordinator decides on the failure once the batch is settled (ruling D6)."""
    match policy:
        case FailurePolicy.ESCALATE:
            return True
        case FailurePolicy.BLOCK_PARENT | FailurePolicy.CONTINUE | FailurePolicy.ESCALATE_HUMAN:
            return False


def allows_merge(policy: FailurePolicy) -> bool:
    """Return whether a tree may be merged without the failed leg, if its coordinator continued (ruling L10)."""
    match policy:
        case FailurePolicy.CONTINUE | FailurePolicy.ESCALATE:
            return True
        case FailurePolicy.BLOCK_PARENT | FailurePolicy.ESCALATE_HUMAN:
            return False
