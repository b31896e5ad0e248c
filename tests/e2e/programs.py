"""The agents' real programs, where `dev-cluster/agents` put them; what is missing is never skipped in silence."""

import re
import subprocess
from functools import cache

import pytest

from tests.e2e.conftest import ROOT

PROGRAMS = {"codex": "runtime_a", "claude": "runtime_b", "kimi": "runtime_c"}
"""Each program and the runtime it is."""

NOT_DRIVEN = "not driven: "


@cache
def _checked() -> tuple[dict[str, str], dict[str, str]]:
    done = subprocess.run(["dev-cluster/agents", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    commands = dict(line.split("\t") for line in done.stdout.splitlines())
    return commands, dict(re.findall(r"^(\w+) \S+: (.*)$", done.stderr, re.MULTILINE))


def available() -> dict[str, str]:
    """The command of every program that is there."""
    return _checked()[0]


def missing() -> dict[str, str]:
    """Why each of the others is not there."""
    return _checked()[1]


def need(*programs: str) -> None:
    """Skip the test when one of them is missing; the run's summary says so out loud."""
    for program in programs:
        if program not in available():
            pytest.skip(f"{NOT_DRIVEN}{program}: {missing().get(program)}")
