"""The pause before a failing child runs again."""

from workflows.policy.waits import doubled

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 300.0


def pause(retries_used: int) -> float:
    """5 s, doubling, at most 5 min (ruling D3)."""
    return doubled(FIRST_PAUSE_SECONDS, retries_used, LONGEST_PAUSE_SECONDS)
