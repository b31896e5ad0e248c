"""Jobs go to a host that has what they need, and wait with a reason while none has (ruling Q4)."""

import pytest

from tests.fleet.machines import Fleet, Machine
from tests.fleet.play import Play, ended_well
from tests.waiting import wait_for

AGENT = """echo "$SERVICE_JOB_ID" >>"$PROOF"
echo '{"service_result": {"decision": "approved", "summary": "fine"}}'"""
pytestmark = pytest.mark.ruling("Q4")


def test_a_label_decides_where_a_job_runs_and_one_that_nobody_has_makes_it_wait(fleet: Fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two", labels='["gpu"]')
    for machine in (one, two):
        machine("daemon", "start")
    one("repo", "add", "acme/shop", "--remote", str(fleet.hub()), "--require", "gpu")
    program = one.program("scout", AGENT)
    assert one("repo", "add", "acme/shop", "--require", "").stderr == "", "no label is not a missing one"
    one("repo", "add", "acme/shop", "--require", "gpu")
    one.register("scout", program)
    job = one.json("agent", "ask", "scout", "hello", "--repo", "acme/shop")["job_id"]
    shown = one.wait_until_ended(job)
    assert (shown["state"], two.proof.split(), one.proof) == ("succeeded", [job], "")
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
@pytest.mark.ruling("Q4.freed")
def test_what_waits_at_a_full_host_goes_to_one_that_joins_and_runs_once(fleet: Fleet) -> None:
    one, two = fleet.host("one", max_parallel_jobs="1"), fleet.host("two", max_parallel_jobs="1")
    play = Play.on(fleet, one, two)
    play.answers(scout={"wait": "go"})
    one("daemon", "start")
    one("repo", "add", "acme/shop", "--remote", str(fleet.hub()))
    play.agent(one, "scout", "acme/shop")
    jobs = [one.json("agent", "ask", "scout", "look", "--repo", "acme/shop")["job_id"] for _ in range(4)]
    play.wait_for("begin", 1)
    two("daemon", "start")
    play.wait_for("begin", 2)
    assert sorted(play.places("none")) == ["one", "two"]
    assert next(event["message"] for job in jobs for event in moves(one, job)).endswith(
        "is offered to another host: its host one is full, and two has a free slot"
    )
    one.kill("worker")
    play.go()
    ended_well(play, one, jobs, 1)


def moves(machine: Machine, job: str) -> list[dict[str, str]]:
    return [event for event in machine.json("job", "events", job) if event["kind"] == "job_moved"]
