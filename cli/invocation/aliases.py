"""Short forms of frequent commands. This module imports nothing, so that the warm process's client starts fast."""

from collections.abc import Sequence

ALIASES = {
    "ask": "agent ask",
    "logs": "daemon logs",
    "start": "daemon start",
    "status": "daemon status",
    "stop": "daemon stop",
    "tree": "job tree",
}


def expand(words: Sequence[str]) -> list[str]:
    """Replace an alias at the beginning by its command."""
    return [*ALIASES.get(words[0], words[0]).split(" "), *words[1:]] if words else []
