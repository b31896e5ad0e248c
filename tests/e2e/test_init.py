"""Set-up by one command, up to a job that has succeeded."""

import json
import subprocess

import pytest

from tests.e2e.conftest import Installed
from tests.e2e.typist import typist
from tests.unboxed import NO_BOX

pytestmark = [pytest.mark.ruling("engine:init"), pytest.mark.long]

AGENT = """
cat > /dev/null
echo '{"service_result": {"decision": "approved", "summary": "There is one folder, src."}}'
"""


def typed(service: Installed, *words: str) -> subprocess.CompletedProcess[str]:
    """Type a command in the repository."""
    return typist().type(words, service.environment, service.tmp / "garden", "")


def test_one_command_leads_to_a_job_that_succeeded_and_says_commands_that_work(installed: Installed) -> None:
    commit = "git init -q garden && git -C garden -c user.name=t -c user.email=t@x.invalid commit -q --allow-empty -m x"
    subprocess.run(["sh", "-c", commit], cwd=installed.tmp, check=True)
    program = installed.tmp / "agent.sh"
    program.write_text(AGENT)
    settings = f'[runtimes.runtime_a]\nadapter = "script"\ncommand = ["sh", "{program}"]\n{NO_BOX}\n'
    (installed.home / "config.toml").write_text(settings)

    first = typed(installed, "init", "--yes", "--json")
    assert first.returncode == 0, first.stderr
    done = json.loads(first.stdout)
    assert (done["repository"]["name"], done["daemon"]) == ("local/garden", "started")
    assert (done["check"]["state"], done["check"]["summary"]) == ("succeeded", "There is one folder, src.")

    again = json.loads(typed(installed, "init", "--yes", "--json").stdout)
    assert (again["daemon"], again["check"], again["next"]) == ("running", None, done["next"])

    for command in done["next"]:
        words = ["sh", "-c", command]
        tried = subprocess.run(words, env=installed.environment, capture_output=True, text=True, check=False)
        assert tried.returncode == 0, f"{command}\n{tried.stdout}{tried.stderr}"
