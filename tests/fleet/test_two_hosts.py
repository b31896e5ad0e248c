"""Two hosts on one cluster."""

import os

import pytest

from tests.fleet.machines import Fleet, Machine, checkout
from tests.guard import MARK

AGENT = """echo "$SERVICE_JOB_ID $GUARDED_TEST_RUN" >>"$PROOF"
echo '{"service_result": {"decision": "approved", "summary": "fine"}}'"""


def scout(machine: Machine, repo: str) -> None:
    machine("repo", "add", repo, str(checkout(machine)))
    machine.register(f"scout-{machine.name}", machine.program("scout", AGENT), repo=repo)


@pytest.mark.ruling("engine:hosts", "Q2")
def test_each_host_runs_the_jobs_of_its_own_repository(fleet: Fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    for machine in (one, two):
        scout(machine, f"acme/{machine.name}")
        machine("daemon", "start")
    job = one.json("agent", "ask", "scout-two", "hello " * 1000, "--repo", "acme/two")["job_id"]
    assert two.wait_until_ended(job)["state"] == "succeeded"
    assert (two.proof, one.proof) == (f"{job} {os.environ[MARK]}\n", ""), "the guard knows agents by the mark"
    assert [each["name"] for each in one.json("daemon", "status", "--all")["hosts"]] == ["one", "two"]


@pytest.mark.long
@pytest.mark.ruling("Q1")
def test_a_host_whose_clock_is_behind_is_seen_and_sees_the_others(fleet: Fleet) -> None:
    one, late = fleet.host("one"), fleet.host("late")
    late.clock(-90)
    for machine in (one, late):
        scout(machine, f"acme/{machine.name}")
        machine("daemon", "start")
    for machine in (one, late):
        hosts = machine.json("daemon", "status", "--all")["hosts"]
        assert [(each["name"], each["has_worker"]) for each in hosts] == [("late", True), ("one", True)]
    job = one.json("agent", "ask", "scout-late", "hello", "--repo", "acme/late")["job_id"]
    assert late.wait_until_ended(job)["state"] == "succeeded"
