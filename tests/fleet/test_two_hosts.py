"""Two hosts on one cluster."""

import os
from collections.abc import Iterator

import pytest

from tests.fleet.machines import Fleet, Machine, checkout, founded
from tests.guard import MARK
from tests.postgres import Postgres
from tests.waiting import wait_for

AGENT = """echo "$SERVICE_JOB_ID $GUARDED_TEST_RUN" >>"$PROOF"
echo '{"service_result": {"decision": "approved", "summary": "fine"}}'"""


def scout(machine: Machine, repo: str) -> None:
    machine("repo", "add", repo, str(checkout(machine)))
    machine.register(f"scout-{machine.name}", machine.program("scout", AGENT), repo=repo)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, temporal: str, database: Postgres) -> Iterator[Fleet]:
    """Run two hosts, the second one with the label `gpu`, and with a repository on each."""
    with founded(tmp_path_factory.mktemp("pair"), temporal, database) as fleet:
        for machine in (fleet.host("one"), fleet.host("two", labels='["gpu"]')):
            scout(machine, f"acme/{machine.name}")
            machine("daemon", "start")
        yield fleet


def ran(machine: Machine, job: str) -> list[str]:
    return [line for line in machine.proof.splitlines() if job in line]


@pytest.mark.ruling("engine:hosts", "Q2")
def test_each_host_runs_the_jobs_of_its_own_repository(pair: Fleet) -> None:
    one, two = pair.machines
    job = one.json("agent", "ask", "scout-two", "hello " * 1000, "--repo", "acme/two")["job_id"]
    assert two.wait_until_ended(job)["state"] == "succeeded"
    assert (ran(two, job), ran(one, job)) == ([f"{job} {os.environ[MARK]}"], []), "the guard knows agents by the mark"
    assert [host["name"] for host in one.json("daemon", "status", "--all")["hosts"]] == ["one", "two"]


@pytest.mark.ruling("Q4")
def test_a_label_decides_where_a_job_runs_and_one_that_nobody_has_makes_it_wait(pair: Fleet) -> None:
    one, two = pair.machines
    one("repo", "add", "acme/shop", "--remote", str(pair.hub()), "--require", "gpu")
    program = one.program("scout", AGENT)
    assert one("repo", "add", "acme/shop", "--require", "").stderr == "", "no label is not a missing one"
    one("repo", "add", "acme/shop", "--require", "gpu")
    one.register("scout", program)
    job = one.json("agent", "ask", "scout", "hello", "--repo", "acme/shop")["job_id"]
    shown = one.wait_until_ended(job)
    assert (shown["state"], len(ran(two, job)), ran(one, job)) == ("succeeded", 1, [])
    assert one.json("job", "show", job)["host"] == "two"
    warned = one.register("big", program, "--require", "tpu")
    assert "no host has the label tpu, so its jobs will wait (there are: arch:" in warned.stderr
    job = one.json("agent", "ask", "big", "hello", "--repo", "acme/shop")["job_id"]
    wait_for(lambda: one.json("job", "show", job)["reason"] == "no host has the label tpu")
    shown = one.json("job", "show", job)
    assert (shown["state"], shown["next"]) == ("queued", "service host list")
    one("job", "kill", job)
    assert one.wait_until_ended(job)["state"] == "cancelled"


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
        assert [(host["name"], host["has_worker"]) for host in hosts] == [("late", True), ("one", True)]
    job = one.json("agent", "ask", "scout-late", "hello", "--repo", "acme/late")["job_id"]
    assert late.wait_until_ended(job)["state"] == "succeeded"
