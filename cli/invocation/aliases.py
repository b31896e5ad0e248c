"""Short ways to type frequent commands. It imports nothing: the client of the warm process has no time for it."""

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
