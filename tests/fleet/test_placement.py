"""Jobs go to a host that has what they need, and wait with a reason while none has (ruling Q4)."""

import pytest

from tests.fleet.machines import Fleet, Machine
from tests.fleet.play import Play, ended_well


@pytest.mark.long
@pytest.mark.ruling("Q4", "Q4.freed")
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
