"""The release that takes the steps of trees where hosts of several releases share them (ruling Q8)."""

import re
from collections.abc import Collection

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


def must_become_current(own: str, current: str, living: Collection[str]) -> bool:
    """Return whether a host has to make its own release the current one: it is newer, or no running host has the
    current one any more. `living` are the releases of all running hosts.
    """
    if not current or own == current:
        return not current
    return is_newer(own, current) or current not in living


def is_newer(one: str, other: str) -> bool:
    """Compare two releases by their numbers; suffixes as in `0.3.0rc1` make no difference."""
    return _numbers(one) > _numbers(other)


def _numbers(release: str) -> tuple[int, ...]:
    match = _NUMBERS.match(release)
    return tuple(map(int, match[0].split("."))) if match else ()
