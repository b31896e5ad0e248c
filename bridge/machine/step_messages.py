"""Messages on the current step of a long operation, for the person who waits for it."""

from collections.abc import Callable

Step = Callable[[str], None]
"""Called with a few words on the current step, whenever it changes."""


def unheard(words: str) -> None:
    """Ignore progress."""
    del words


def megabytes(done: int, of: int) -> str:
    """Format the progress of a file transfer."""
    return f"{done / 1e6:.0f} of {of / 1e6:.0f} MB"
