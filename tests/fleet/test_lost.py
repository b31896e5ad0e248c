"""Jobs outlive their host: they go on elsewhere with their files, once, whenever the host comes back (ruling Q5)."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.machines import GIT, Fleet, Machine
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.ruling("Q5", "Q5.lost", "Q5.kept")]

MOVE_AFTER = 20
AGENT = """echo "$SERVICE_JOB_ID" >>"$PROOF"
if [ -e wip.txt ]; then cat wip.txt >seen.txt
else echo half >wip.txt; sleep ${HOLD:-600}; echo late >late.txt; fi
echo '{"service_result": {"decision": "implemented", "summary": "fine"}}'"""


def started(fleet: Fleet) -> tuple[Machine, Machine, str, Path]:
    """Start an implement job on the first of two hosts, and wait for its first snapshot at the hub."""
    more = f'[fleet]\nmove_after = "{MOVE_AFTER}s"\n'
    one, two, hub = fleet.host("one", more), fleet.host("two", more), fleet.hub()
    one("daemon", "start")
    one("repo", "add", "acme/shop", "--remote", str(hub))
    one.register("builder", one.program("builder", AGENT))
    job = one.json("agent", "implement", "builder", "build it", "--repo", "acme/shop")["job_id"]
    wait_for(lambda: one.proof)
    two("daemon", "start")
    wait_for(lambda: f"refs/service/snap/{job}" in refs(hub))
    return one, two, job, hub


def refs(hub: Path) -> dict[str, str]:
    command = [*GIT, "-C", str(hub), "for-each-ref", "--format=%(refname) %(objectname)", "refs/service"]
    rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(row.split(" ") for row in rows)


def files(hub: Path, ref: str) -> set[str]:
    command = [*GIT, "-C", str(hub), "ls-tree", "--name-only", ref]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def notified(machine: Machine) -> list[dict[str, Any]]:
    path = machine.home / "notifications.jsonl"
    notifications = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row for row in notifications if row["kind"] == "host_unseen"]


def goes_on(two: Machine, job: str, since: float, hub: Path) -> None:
    """Wait until the job has ended elsewhere, in time and with its uncommitted files."""
    shown = two.wait_until_ended(job)
    assert time.monotonic() - since < MOVE_AFTER + 75
    assert (shown["state"], shown["attempt"], two.proof.split()) == ("succeeded", 2, [job])
    assert {"wip.txt", "seen.txt"} <= files(hub, f"refs/service/{job}-attempt2")
    tree = two.json("job", "tree", job)
    assert [row["job_id"] for row in tree["jobs"]] == [job], "no job of the budget is used"
    wait_for(lambda: notified(two))


def test_a_host_that_is_killed(fleet: Fleet) -> None:
    one, two, job, hub = started(fleet)
    one.crash()
    goes_on(two, job, time.monotonic(), hub)
    one("daemon", "start")
    wait_for(lambda: f"refs/service/kept/{job}-1" in refs(hub))
    assert (one.proof.split(), len(notified(two)), notified(one)) == ([job], 1, [])
    assert any(event["kind"] == "work_kept" for event in two.json("job", "events", job))


def test_a_host_that_is_cut_off_while_its_agent_works(fleet: Fleet) -> None:
    one, two, job, hub = started(fleet)
    one.cut_off()
    goes_on(two, job, time.monotonic(), hub)
    one.connect()
    wait_for(lambda: f"refs/service/kept/{job}-1" in refs(hub))
    assert "late.txt" not in files(hub, f"refs/service/kept/{job}-1"), "the agent was ended"
    shown = two.json("job", "show", job)
    assert (shown["state"], shown["attempt"], one.proof.split(), two.proof.split()) == ("succeeded", 2, [job], [job])
