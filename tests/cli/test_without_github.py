"""Nothing of GitHub is imported without an account, and with one only where it is used (ruling L2)."""

import json
import os
import subprocess
import sys

import pytest

from activities.settings.home import Home
from tests.bridge.github_seeds import SETTINGS

pytestmark = pytest.mark.ruling("L2", "L8")

FOREIGN = ("gidgethub", "httpx", "jwt", "bridge.github", "activities.github", "bridge.operations.health.github")
PROGRAM = """
import json, sys
import activities.worker, activities.ended_outside, bridge.daemon.control, bridge.daemon.__main__
from bridge.http import process
from bridge.operations.service import Service
from cli.main import main
process.app_of(Service.locate())
for words in {words!r}:
    assert main(words) in {{0, 1}}, words
print(json.dumps([name for name in sys.modules if name.startswith({foreign!r})]))
"""
EVERYDAY = [["job", "list"], ["attention"], ["daemon", "status"], ["config", "show"]]


@pytest.mark.parametrize(
    ("settings", "words"), [("", [*EVERYDAY, ["doctor"]]), (SETTINGS, EVERYDAY)], ids=["no account", "an account"]
)
def test_worker_bridge_and_command_line_do_without(home: Home, settings: str, words: list[list[str]]) -> None:
    home.config.write_text(settings)
    said = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.format(words=words, foreign=FOREIGN)],
        env={**os.environ, "SERVICE_HOME": str(home.root), "DESK_TOKEN": "ghp_not_used"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout.splitlines()[-1]) == []
