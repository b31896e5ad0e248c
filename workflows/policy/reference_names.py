"""The names of local branches that mark commits in a job's repository: `base`, `line` and `leg/<id>` (ruling O4)."""

import re

BASE, LINE = "base", "line"

_NO_REF = re.compile(r"\.(?=\.|/|$|lock(?:/|$))|(?<=/)\.")


def ref_part(name: str) -> str:
    """Turn a leg's id into a valid part of a branch name: ruling A9 allows dots where git does not."""
    return _NO_REF.sub("-", name)


def leg_reference(leg: str) -> str:
    """Return the name of the branch for a leg's work."""
    return f"leg/{ref_part(leg)}"
