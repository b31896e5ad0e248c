"""Run ids: `prun-` and twelve characters that sort by time, as job ids do (ruling B1)."""

import re

from workflows.model import ids
from workflows.model.digests import digest

_RUN = re.compile(r"prun-[A-Za-z0-9_-]{1,64}")


def run_id(milliseconds: int, entropy: int) -> str:
    """The id of a run that starts now."""
    return ids.root_id(milliseconds, entropy).replace("job-", "prun-", 1)


def is_run_id(text: str) -> bool:
    """Whether it can be the id of a run; callers may bring ids of their own."""
    return _RUN.fullmatch(text) is not None


def tree_id(run: str, created_at: float, number: int, attempt: int) -> str:
    """The root job of a stage's attempt: the same however often it is asked for."""
    place = 16 * number + attempt  # a slot of its own in time: no two attempts of a run are ever told apart by chance
    return ids.root_id(int(created_at * 1000) + 10 * place, int(digest([run, place]), 16))


FIRING = "firing-"
"""How the ids of the workflows begin that a schedule starts; Temporal adds the time."""


def workflow_id(pipeline: str) -> str:
    """A pipeline has one active run, because Temporal has one workflow of an id (ruling J4)."""
    return f"pipeline-{pipeline}"
