"""A job that runs on one host, looked at and merged from another."""

import subprocess

import pytest

from tests.fleet.machines import Fleet
from tests.waiting import wait_for

AGENT = """\
echo working on it
echo 1 >a.txt
while [ ! -e {go} ]; do sleep 0.05; done
echo '{{"service_result": {{"decision": "implemented", "summary": "wrote a.txt"}}}}'
"""


@pytest.mark.long
@pytest.mark.ruling("Q3.looks", "Q3.work")
def test_a_running_job_is_seen_and_its_work_merged_from_another_host(fleet: Fleet) -> None:
    one, two, go = fleet.host("one"), fleet.host("two"), fleet.folder / "go"
    one.configure(f'[bridge]\nurl = "http://127.0.0.1:{one.extra["SERVICE_BRIDGE_PORT"]}"\n')
    one("daemon", "start")
    bare, program = fleet.hub(), fleet.folder / "dev.sh"
    two("repo", "add", "acme/shop", "--remote", str(bare))
    program.write_text(AGENT.format(go=go))
    words = ("--runtime", "shell", "--command", f"sh {program}", "--repo", "acme/shop", "--capabilities", "implement")
    two("agent", "add", "dev", *words, "--autonomy", "workspace-write")
    job = one.json("agent", "implement", "dev", "write a.txt", "--repo", "acme/shop")["job_id"]
    wait_for(lambda: "working on it" in two.run("job", "log", job).stdout, lambda: two("job", "show", job).stdout)
    assert "write a.txt" in two("job", "prompt", job).stdout
    assert "+1\n" in two("job", "diff", job).stdout
    go.touch()
    assert one.wait_until_ended(job)["state"] == "succeeded"
    assert "fast-forwarded in main at" in two("job", "merge", job, "--into-mine").stdout
    assert subprocess.check_output(["git", "-C", str(bare), "show", "main:a.txt"]) == b"1\n"
    assert [leg["state"] for leg in one.json("job", "branches", job)["legs"]] == ["merged"]
    one("daemon", "stop")
    assert f"ssh one service job log {job}" in two("job", "log", job, code=5).stderr
