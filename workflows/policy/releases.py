"""The release that takes the steps of trees where hosts of several releases share them (ruling Q8)."""

import re
from collections.abc import Sequence

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


LEADING_HOSTS = 2
"""The hosts that must run a newer release before it takes the steps of trees: the death of one then stops no tree."""


def must_become_current(own: str, current: str, living: Sequence[str]) -> bool:
    """Return whether a host has to make its own release the current one: it is newer, and two hosts run it, or no
    running host has the current one any more. `living` has the release of each running host.
    """
    if not current or own == current:
        return not current
    return current not in living or (is_newer(own, current) and living.count(own) >= LEADING_HOSTS)


def is_newer(one: str, other: str) -> bool:
    """Compare two releases by their numbers; suffixes as in `0.3.0rc1` make no difference."""
    return _numbers(one) > _numbers(other)


def _numbers(release: str) -> tuple[int, ...]:
    match = _NUMBERS.match(release)
    return tuple(map(int, match[0].split("."))) if match else ()
