"""Job ids carry their tree (ruling B1): `job-<12 base32>` for a root, `<root>.<n>` for others. Runs: `prun-<12>`."""

import re

from workflows.model import ids
from workflows.text.digests import digest

ALPHABET = "0123456789abcdefghijklmnopqrstuv"
"""Base32 whose letters sort like their values, so that root ids sort by time."""

RANDOM_BITS = 21
_JOB = re.compile(r"(job-[0-9a-v]{12})(?:\.[1-9][0-9]{0,3})?")
_PASTED = re.compile(r"(?<![a-z0-9-])(?:job-[0-9a-v]{12}(?:\.[1-9][0-9]{0,3})?|task-[0-9a-v]{12})(?![a-z0-9])")


def root_id(milliseconds: int, entropy: int) -> str:
    """Return the id of a root that starts at this time: 39 bits of hundredths of seconds, 21 random bits."""
    value = (milliseconds // 10 << RANDOM_BITS | entropy % (1 << RANDOM_BITS)) % (1 << 60)
    return "job-" + "".join(ALPHABET[value >> shift & 31] for shift in range(55, -1, -5))


def root_of(job_id: str) -> str | None:
    """Return the id of the root job in a job's tree; None for an invalid job id."""
    match = _JOB.fullmatch(job_id)
    return match[1] if match else None


def find(text: str) -> str:
    """Return the job id in a pasted text, such as a branch, a task id, a link or a quoted id; "" unless it has one."""
    job_ids = {match.replace("task-", "job-") for match in _PASTED.findall(text.lower())}
    return job_ids.pop() if len(job_ids) == 1 else ""


def task_id(root: str) -> str:
    """Return the id of the task that a tree opens if none is given."""
    return "task-" + root.removeprefix("job-")


_RUN = re.compile(r"prun-[A-Za-z0-9_-]{1,64}")


def run_id(milliseconds: int, entropy: int) -> str:
    """Return the id of a run that starts at this time."""
    return ids.root_id(milliseconds, entropy).replace("job-", "prun-", 1)


def is_run_id(text: str) -> bool:
    """Return whether a text is a valid run id; callers may choose their own ids."""
    return _RUN.fullmatch(text) is not None


def tree_id(run: str, created_at: float, number: int, attempt: int) -> str:
    """Derive the root job's id from a stage's attempt: equal arguments give an equal id."""
    place = 16 * number + attempt  # a slot of its own in time, so that attempts of a run differ by more than chance
    return ids.root_id(int(created_at * 1000) + 10 * place, int(digest([run, place]), 16))


FIRING = "firing-"
"""Prefix of the ids of the workflows that a schedule starts; Temporal appends the time."""


def workflow_id(pipeline: str) -> str:
    """Return the workflow id of a pipeline's runs: since ids are unique, one run is active at a time (ruling J4)."""
    return f"pipeline-{pipeline}"
