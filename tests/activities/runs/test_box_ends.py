"""Bubblewrap ends a moment before the first process of its box does: processes left at that moment end by themselves.

A separate process plays the supervisor: it collects every child it has.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from activities.runs.os_processes import identity
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.ruling("engine:runs", "N2"),
    pytest.mark.skipif(sys.platform != "linux", reason="there are boxes on Linux only"),
]

SUPERVISOR = """
import json, os, subprocess, sys, time
from activities.runs import supervisor

seconds, words, serving = json.loads(sys.argv[1])
supervisor.BOX_SECONDS = seconds
supervisor.become_subreaper()
signals = supervisor.Signals()
proxy = subprocess.Popen(["sleep", "600"]).pid if serving else None
outer = subprocess.Popen(["sh", "-c", f"({words}) & echo $!"])
outer.returncode = 0  # it is collected below
command = supervisor.RunningCommand(outer.pid, "no-such-mark", in_bwrap=True, proxy=proxy)
while command.reap() is None:
    signals.wait(None)
begun = time.monotonic()
survivors = command.kill(signals)
print(json.dumps({"survivors": survivors, "took": time.monotonic() - begun, "proxy": proxy}))
"""


def ended(folder: Path, seconds: float, words: str, *, serving: bool = False) -> dict[str, Any]:
    """Return the supervisor's reaction to a box in which these commands are still running."""
    args = json.dumps((seconds, words, serving))
    done = subprocess.run(
        [sys.executable, "-c", SUPERVISOR, args], capture_output=True, text=True, check=True, timeout=300, cwd=folder
    )
    inner, report = done.stdout.splitlines()
    assert identity(int(inner)) is None
    reaction: dict[str, Any] = json.loads(report)
    return reaction


def test_what_is_about_to_end_is_waited_for_and_not_killed(tmp_path: Path) -> None:
    reaction = ended(tmp_path, 300, "sleep 0.3; touch ended")
    assert reaction["survivors"] == 0
    assert (tmp_path / "ended").exists()


def test_what_does_not_end_is_killed(tmp_path: Path) -> None:
    assert ended(tmp_path, 0.1, "exec sleep 600")["survivors"] == 0


def test_the_proxy_that_served_it_is_not_waited_for(tmp_path: Path) -> None:
    reaction = ended(tmp_path, 300, "true", serving=True)
    assert reaction["survivors"] == 0
    assert reaction["took"] < 150
    wait_for(lambda: identity(reaction["proxy"]) is None)
