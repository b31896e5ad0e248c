"""Exponential backoff, with a cap: the waits before retries (ruling D3)."""

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 5.0, 300.0
MOST_DOUBLINGS = 16


def backoff(first: float, times: int, longest: float = float("inf")) -> float:
    """Return the wait after so many failures; `longest` is the cap."""
    return float(min(first * 2 ** min(times, MOST_DOUBLINGS), longest))


def retry_backoff(retries_used: int) -> float:
    """Return the wait before a failing job runs again: 5 s, doubling, at most 5 min (ruling D3)."""
    return backoff(FIRST_RETRY_SECONDS, retries_used, LONGEST_RETRY_SECONDS)
