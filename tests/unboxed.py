"""Agents without a box, for tests of other subjects: scripts that leave proofs in temporary folders."""

import json
from collections.abc import Mapping
from typing import Any

from activities.runtimes.known_runtimes import RUNTIMES
from activities.settings.model import Settings
from tests.guard import MARK

NO_BOX = 'box = "none"'
"""A line of the section `[runtimes.<name>]`."""


def shell(*variables: str) -> str:
    """Return the section of the shell runtime; its agents have these variables, and the mark of the test run."""
    return f"[runtimes.shell]\n{NO_BOX}\nenv = {json.dumps([*variables, MARK])}\n"


def unboxed(values: Mapping[str, Any] | None = None) -> Settings:
    """Return settings in which no runtime has a box."""
    given = dict(values or {})
    named = given.get("runtimes", {})
    sections = {name: {"box": "none"} | named.get(name, {}) for name in (*RUNTIMES, *named)}
    return Settings.model_validate(given | {"runtimes": sections})
