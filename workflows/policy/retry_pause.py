"""The pause before a failing child runs again."""

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 300.0


def pause(retries_used: int) -> float:
    """5 s, doubling, at most 5 min (ruling D3)."""
    return float(min(FIRST_PAUSE_SECONDS * 2 ** min(retries_used, 16), LONGEST_PAUSE_SECONDS))
