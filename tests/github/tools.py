"""Tools from `dev-cluster/github-tools` and Debian; a test whose tool is missing is skipped, with the reason."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@cache
def _checked() -> tuple[dict[str, str], dict[str, str]]:
    words = ["dev-cluster/github-tools", "--check"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    versions = dict(line.split("\t") for line in done.stdout.splitlines())
    return versions, dict(re.findall(r"^(\w+) \S+: (.*)$", done.stderr, re.MULTILINE))


def need(name: str) -> Path:
    """Return the tool's path: openapi, examples and schemas are folders."""
    versions, missing = _checked()
    if name not in versions:
        pytest.skip(f"{name}: {missing.get(name)}")
    return Path(versions[name])


def need_gh() -> str:
    """Return the path of GitHub's own command line."""
    program = shutil.which("gh")
    if program is None:
        pytest.skip("gh is not on PATH: apt-get install gh")
    return program
