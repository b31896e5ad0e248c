"""How long something is waited for that fails again and again: twice as long each time, up to a bound."""

MOST_DOUBLINGS = 16


def doubled(first: float, times: int, longest: float = float("inf")) -> float:
    """The wait after so many others."""
    return float(min(first * 2 ** min(times, MOST_DOUBLINGS), longest))
