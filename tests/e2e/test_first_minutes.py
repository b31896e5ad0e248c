"""From a clone to the first merged result, by the commands of the README and no others."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.host import boxing
from activities.runtimes.known_runtimes import CODEX
from activities.settings.model import Settings
from tests.e2e.conftest import lane
from tests.unboxed import NO_BOX
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.ruling("engine:init", "O7"), pytest.mark.long]
ROOT = Path(__file__).parents[2]
PROGRAM = """#!/bin/sh
[ "$1" = --version ] && { echo "codex-cli VERSION"; exit; }
decision=approved
case $(cat) in *"Raise the limit to 100"*) echo "limit = 100" > limiter.py; decision=implemented;; esac
echo '{"type": "thread.started", "thread_id": "t-1"}'
result='{\\"service_result\\": {\\"decision\\": \\"'$decision'\\", \\"summary\\": \\"The limit is 100.\\"}}'
echo '{"type": "item.completed", "item": {"type": "agent_message", "text": "'$result'"}}'
echo '{"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 5}}'
"""
"""A program that prints as codex does, and works without a model."""


@pytest.fixture
def account() -> Iterator[dict[str, str]]:
    """Create an account with a repository and with codex, logged in, and nothing else; return its environment."""
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as folder:
        home, programs = Path(folder, "person"), Path(folder, "bin")
        for path in (home, home / "shop", home / ".codex", programs):
            path.mkdir()
        for path in (Path(folder), programs):
            path.chmod(0o755)  # an account of agents' own starts the program
        (home / ".codex/auth.json").write_text("{}")
        program = programs / "codex"
        program.write_text(PROGRAM.replace("VERSION", ".".join(map(str, CODEX.minimum))))
        program.chmod(0o755)
        (home / "shop/limiter.py").write_text("limit = 1\n")
        who = "-c user.name=t -c user.email=t@example.invalid"
        commit = f"git init -q -b main && git add . && git {who} commit -q -m first"
        subprocess.run(["sh", "-c", commit], cwd=home / "shop", check=True)
        search = f"{programs}{os.pathsep}{os.environ['PATH']}"
        if boxing.refusal(Settings(), "runtime_a"):  # where `init` would ask whether to run without one
            (home / ".service").mkdir(mode=0o700)
            (home / ".service/config.toml").write_text(f"[runtimes.codex]\n{NO_BOX}\n")
        environment: dict[str, str] = {"HOME": str(home), "PATH": search, "TMPDIR": folder, "LANG": "C.UTF-8", **lane()}
        try:
            yield environment
        finally:
            stop = [str(ROOT / ".venv/bin/service"), "daemon", "stop"]
            subprocess.run(stop, env=environment, check=False, capture_output=True)


def commands() -> list[str]:
    """Return the commands of the README's first two blocks, without their comments."""
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[:2]
    return [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines()]


def test_five_commands_lead_from_a_clone_to_a_merged_result(account: dict[str, str]) -> None:
    *typed, merge = commands()
    assert len(typed) == 4
    shell = "\n".join(
        [
            "set -e",
            *typed[:-1],
            f"{typed[-1]} | tee told",
            "JOB=$(sed -n 's/^job  *\\(job-[a-z0-9]*\\)$/\\1/p' told)",
            "rm told",
            re.sub(r"\bJOB\b", "$JOB", merge),
        ]
    )
    done = subprocess.run(
        ["bash", "--norc"], input=shell, capture_output=True, text=True, cwd=ROOT, env=account, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (Path(account["HOME"]) / "shop/limiter.py").read_text() == "limit = 100\n"
    assert "agent builder, repository local/shop" in done.stderr
