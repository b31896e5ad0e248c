"""The demo as typed: without settings, anywhere, to its end, without leaving anything behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.stage import running

pytestmark = [pytest.mark.ruling("engine:demo"), pytest.mark.long]

SERVICE = (sys.executable, "-P", "-c", "from cli.warm.start import run; run()")
SECONDS = 300


def test_a_check_fails_the_lead_plans_again_and_nothing_is_left(tmp_path: Path) -> None:
    user, temporary = tmp_path / "user", tmp_path / "tmp"
    user.mkdir()
    temporary.mkdir()
    bare = {"HOME": str(user), "TMPDIR": str(temporary), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    done = subprocess.run(
        [*SERVICE, "demo"], env=bare, cwd=user, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    steps = ["lead plans again", "changes requested", "verify-limiter-again", "implemented: The limiter is built"]
    places = [done.stdout.index(step) for step in steps]
    assert places == sorted(places)
    assert [str(path) for folder in (user, temporary) for path in folder.rglob("*")] == []
    assert running(str(temporary)) == []


def test_what_is_kept_is_looked_at_and_ended_by_the_commands_it_says(tmp_path: Path) -> None:
    home = tmp_path / "kept"
    environment = {**os.environ, "SERVICE_HOME": str(tmp_path / "none")}
    words = [*SERVICE, "demo", "--keep", "--json", "--home", str(home)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = json.loads(done.stdout)
    assert (outcome["state"], outcome["home"]) == ("done", str(home))
    assert not (tmp_path / "none").exists()
    merge = [*SERVICE, "job", "merge", outcome["job_id"]]
    own = {**environment, "SERVICE_HOME": str(home)}
    merged = subprocess.run(merge, env=own, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert merged.returncode == 0, merged.stdout + merged.stderr
    for command in [command for command in outcome["next"] if not command.endswith("dashboard")]:
        tried = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=SECONDS)
        assert tried.returncode == 0, f"{command}\n{tried.stdout}{tried.stderr}"
    assert not home.exists()
