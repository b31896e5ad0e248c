"""Run ids: `prun-` and twelve characters that sort by time, like job ids (ruling B1)."""

import re

from workflows.model import ids
from workflows.text.digests import digest

_RUN = re.compile(r"prun-[A-Za-z0-9_-]{1,64}")


def run_id(milliseconds: int, entropy: int) -> str:
    """Return the id of a run that starts now."""
    return ids.root_id(milliseconds, entropy).replace("job-", "prun-", 1)


def is_run_id(text: str) -> bool:
    """Return whether a text is a valid run id; callers may supply their own."""
    return _RUN.fullmatch(text) is not None


def tree_id(run: str, created_at: float, number: int, attempt: int) -> str:
    """Return the root job of a stage's attempt; deterministic."""
    place = 16 * number + attempt  # a slot of its own in time, so that attempts of a run differ by more than chance
    return ids.root_id(int(created_at * 1000) + 10 * place, int(digest([run, place]), 16))


FIRING = "firing-"
"""Prefix of the workflow ids that a schedule starts; Temporal appends the time."""


def workflow_id(pipeline: str) -> str:
    """Return the workflow id of a pipeline's runs: since ids are unique, one run is active at a time (ruling J4)."""
    return f"pipeline-{pipeline}"
