"""Ids that carry their tree (ruling B1)."""

import re

_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_LENGTH = 12
_RANDOM_BITS = 18
_ROOT = re.compile(r"job-[^.]+")


def new_root_id(milliseconds: int, entropy: int) -> str:
    """`job-` and twelve base-32 digits that sort by time; both numbers are the caller's, who has a clock."""
    number = (milliseconds << _RANDOM_BITS | entropy % (1 << _RANDOM_BITS)) % 32**_LENGTH
    return "job-" + "".join(_DIGITS[number >> 5 * place & 31] for place in reversed(range(_LENGTH)))


def root_of(job_id: str) -> str:
    """The tree of any job id; an id that is none stays what it is."""
    found = _ROOT.match(job_id)
    return found.group() if found else job_id
