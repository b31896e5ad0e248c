"""Disk space: removal of old trees does not affect a running tree and one that waits for a person."""

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.conftest import Installed

pytestmark = [pytest.mark.ruling("engine:gc"), pytest.mark.long]

AGO = time.time() - 40 * 86_400
QUESTION = {"id": "q1", "prompt": "Which port?", "choices": ["80", "8080"]}


def result(decision: str, **more: object) -> str:
    return "echo '" + json.dumps({"service_result": {"decision": decision, "summary": "said", **more}}) + "'"


AGENT = f"""cat >/dev/null
case "$SERVICE_AGENT-$SERVICE_CONTINUATION" in
asks-none) {result("blocked", human_questions=[QUESTION])} ;;
waits-*) while [ ! -e "$PROOF" ]; do sleep 0.1; done; {result("approved")} ;;
*) {result("approved")} ;;
esac
"""


def ask(service: Installed, agent: str) -> str:
    return str(service.json("agent", "ask", agent, "go on " + 9000 * "x", "--repo", "acme/shop")["job_id"])


def grow_old(service: Installed, job: str) -> None:
    """Change a tree's times as if it had ended long ago."""
    with closing(sqlite3.connect(service.home / "store.db")) as store:
        store.execute("UPDATE tasks SET opened_at = ?, ended_at = ? WHERE root_job_id = ?", (AGO, AGO, job))
        store.commit()
    for path in (service.home / "artifacts").rglob("*"):
        os.utime(path, (AGO, AGO))


def run_of(service: Installed, job: str) -> list[Path]:
    return [*(service.home / "runs").glob(f"{job}.*")]


def test_an_old_tree_goes_and_those_that_go_on_go_on(installed: Installed) -> None:
    for name in ("asks", "waits", "ends"):
        installed.agent(name, AGENT)
    installed("daemon", "start")
    over = ask(installed, "ends")
    installed.wait_for(lambda: installed.tree(over)["task"]["state"] == "done")
    grow_old(installed, over)
    paused, running = ask(installed, "asks"), ask(installed, "waits")
    installed.wait_for(lambda: installed.tree(paused)["task"]["state"] == "awaiting_human")
    installed.wait_for(lambda: installed.tree(running)["jobs"][0]["state"] == "running")
    installed.wait_for(lambda: not list((installed.home / "trash").glob("*")))

    report = installed.json("gc")
    assert {room["what"]: room["count"] > 0 for room in report["rooms"]} == {
        "runs": True, "sessions": False, "artifacts": True, "worktrees": False, "logs": False,
    }  # fmt: skip
    assert len(report["kept"]) == 1
    assert run_of(installed, over)
    assert "freed" in installed("gc", "--yes").stdout
    assert not run_of(installed, over)
    assert installed.json("job", "show", over)["summary"] == "said"
    refused = installed("job", "retry", over, code=3).stderr
    assert "nothing of the task" in refused

    installed("resume", paused, "answer", "q1: 8080")
    (installed.tmp / "proof").touch()
    for job in (paused, running):
        installed.wait_for(lambda job=job: installed.tree(job)["over"])  # type: ignore[misc]
        assert installed.tree(job)["task"]["state"] == "done", installed.tree(job)["task"]["reason"]
    again = ask(installed, "ends")
    installed.wait_for(lambda: installed.tree(again)["task"]["state"] == "done")
