"""A service that is copied while it works, and continues elsewhere."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.conftest import Installed, lane

pytestmark = pytest.mark.long

QUESTION = {"id": "q1", "prompt": "Which port?", "choices": ["80", "8080"]}
RUNNING, PAUSED = 20, 5


def result(decision: str, **more: object) -> str:
    return "echo '" + json.dumps({"service_result": {"decision": decision, "summary": "said", **more}}) + "'"


ASKS = f"""cat >/dev/null
case "$SERVICE_CONTINUATION" in
answered) {result("approved")} ;;
*) {result("blocked", human_questions=[QUESTION])} ;;
esac
"""
WORKS = f"cat >/dev/null\nsleep 15\n{result('approved')}\n"


def ask(service: Installed, agent: str) -> str:
    return str(service.json("agent", "ask", agent, "go on", "--repo", "acme/shop")["job_id"])


def paused(service: Installed) -> str:
    job = ask(service, "asks")
    service.wait_for(lambda: service.tree(job)["task"]["state"] == "awaiting_human")
    return job


def test_a_service_is_copied_with_20_trees_at_work_and_5_paused_and_all_end_elsewhere(
    installed: Installed, tmp_path: Path
) -> None:
    installed.agent("asks", ASKS)
    installed.agent("works", WORKS)
    installed("daemon", "start")
    asking = [paused(installed) for _ in range(PAUSED)]
    working = [ask(installed, "works") for _ in range(RUNNING)]
    installed.wait_for(lambda: any(installed.tree(job)["jobs"][0]["state"] == "running" for job in working))
    assert "copied" in installed("backup", str(tmp_path / "copy")).stdout
    installed("daemon", "stop")
    shutil.move(installed.home, tmp_path / "the machine that is gone")

    other = Installed(tmp_path / "elsewhere", installed.repo, installed.tmp, lane())
    try:
        assert (
            f"next: SERVICE_HOME={other.home} service daemon start" in other("restore", str(tmp_path / "copy")).stdout
        )
        other("daemon", "start")
        for job in asking:
            other("resume", job, "answer", "q1: 8080")
        over = {"done", "blocked"}
        for job in (*asking, *working):
            other.wait_for(lambda job=job: other.tree(job)["task"]["state"] in over)  # type: ignore[misc]
            assert other.tree(job)["task"]["state"] == "done", other.tree(job)["task"]["reason"]
    finally:
        other("daemon", "stop")


def test_a_backup_is_brought_back_and_used(installed: Installed, tmp_path: Path) -> None:
    installed.agent("asks", ASKS)
    installed("daemon", "start")
    job = paused(installed)
    installed("backup", str(tmp_path / "copy"))
    installed("daemon", "stop")
    shutil.move(installed.home, tmp_path / "gone")
    again = replace(installed)  # a fresh object, which has not read the deleted store
    assert again.json("restore", str(tmp_path / "copy"))["files"] > 3
    again("daemon", "start")
    again("resume", job, "answer", "q1: 8080")
    again.wait_for(lambda: again.tree(job)["task"]["state"] == "done")
