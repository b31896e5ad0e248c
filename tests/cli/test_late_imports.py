"""libgit2 takes a tenth of a second to load: who only reads rows does without it."""

import os
import subprocess
import sys

import pytest

from activities.settings.home import Home

pytestmark = pytest.mark.ruling("N3")

PROGRAM = """
import sys
from cli.main import main
import bridge.operations.branches, bridge.operations.diffs, bridge.operations.leftovers, bridge.operations.merges
for words in (["job", "list"], ["attention"], ["repo", "list"], ["daemon", "status"]):
    assert main(words) in {0, 1}, words
assert "pygit2" not in sys.modules
"""


def test_commands_that_look_at_no_repository_do_not_load_libgit2(home: Home) -> None:
    env = {**os.environ, "SERVICE_HOME": str(home.root)}
    said = subprocess.run([sys.executable, "-P", "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
