"""How far something is that lasts, said to who waits for it."""

from collections.abc import Callable

Step = Callable[[str], None]
"""Told what is done now, in a few words, as often as that changes."""


def unheard(said: str) -> None:
    """Nobody waits."""
    del said


def megabytes(done: int, of: int) -> str:
    """How much of a file, as people read it."""
    return f"{done / 1e6:.0f} of {of / 1e6:.0f} MB"
