"""Which release runs the workflow tasks of trees while hosts of several releases share them (ruling Q8)."""

import re
from collections.abc import Sequence

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


LEADING_HOSTS = 2
"""How many hosts must run a newer release before it becomes the current one: then the failure of one host stops no
tree.
"""


def must_become_current(own: str, current: str, living: Sequence[str]) -> bool:
    """Return whether a host has to make its own release the current one: either its release is newer and two hosts run
    it, or no running host has the current one. `living` has the release of each running host.
    """
    if not current or own == current:
        return not current
    return current not in living or (is_newer(own, current) and living.count(own) >= LEADING_HOSTS)


def is_newer(one: str, other: str) -> bool:
    """Return whether one release is newer than the other, by their numbers; suffixes as in `0.3.0rc1` make no
    difference.
    """
    return _numbers(one) > _numbers(other)


def _numbers(release: str) -> tuple[int, ...]:
    match = _NUMBERS.match(release)
    return tuple(map(int, match[0].split("."))) if match else ()
