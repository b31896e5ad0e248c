"""Job ids carry their tree (ruling B1): `job-<12 base32>` for a root, `<root>.<n>` for every other job."""

import re

ALPHABET = "0123456789abcdefghijklmnopqrstuv"
"""Base32 whose letters sort like their values, so that root ids sort by time."""

RANDOM_BITS = 21
_JOB = re.compile(r"(job-[0-9a-v]{12})(?:\.[1-9][0-9]{0,3})?")


def root_id(milliseconds: int, entropy: int) -> str:
    """Return the id of a root that starts now: 39 bits of hundredths of seconds, 21 random bits."""
    value = (milliseconds // 10 << RANDOM_BITS | entropy % (1 << RANDOM_BITS)) % (1 << 60)
    return "job-" + "".join(ALPHABET[value >> shift & 31] for shift in range(55, -1, -5))


def root_of(job_id: str) -> str | None:
    """Return the root of a job's tree; None for an invalid job id."""
    match = _JOB.fullmatch(job_id)
    return match[1] if match else None


def task_id(root: str) -> str:
    """Return the task a tree opens if it is not given one."""
    return "task-" + root.removeprefix("job-")
