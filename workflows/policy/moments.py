"""A moment as people read it."""

from datetime import UTC, datetime


def clock(at: float) -> str:
    """A moment in UTC, to the second."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at:.0f} s after 1970"
