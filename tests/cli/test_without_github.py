"""Nothing of GitHub is imported without an account, and with one only where it is used (ruling L2)."""

import os
import subprocess
import sys

import pytest

from activities.settings.home import Home
from tests.bridge.github_seeds import SETTINGS

pytestmark = pytest.mark.ruling("L2", "L8")

FOREIGN = ("gidgethub", "httpx", "jwt", "bridge.github", "activities.github", "bridge.operations.health.github")
EVERYDAY = [["job", "list"], ["attention"], ["daemon", "status"], ["config", "show"]]
ROUNDS = (("", [*EVERYDAY, ["doctor"]]), (SETTINGS, EVERYDAY))
"""Settings without an account and with one, and what is typed then."""
PROGRAM = f"""
import sys
import activities.worker, activities.ended_outside, bridge.daemon.control, bridge.daemon.__main__
from bridge.http import process
from bridge.operations.service import Service
from cli.main import main
for settings, typed in {ROUNDS!r}:
    service = Service.locate()
    service.home.config.write_text(settings)
    process.app_of(Service(service.home))
    for words in typed:
        assert main(words) in {{0, 1}}, words
    foreign = [name for name in sys.modules if name.startswith({FOREIGN!r})]
    assert not foreign, (settings, foreign)
"""


def test_worker_bridge_and_command_line_do_without(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env={**os.environ, "SERVICE_HOME": str(home.root), "DESK_TOKEN": "ghp_not_used"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
