"""A host that is cut off from Temporal or from PostgreSQL alone, for longer than `move_after` (ruling Q5)."""

import time
from functools import partial

import pytest

from activities.store import moves
from tests.fleet.machines import Fleet, Machine
from tests.fleet.play import Play, over
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.ruling("Q5", "Q5.lost")]

MOVE_AFTER = 20
REPO = "acme/shop"


def started(fleet: Fleet) -> tuple[Play, Machine, Machine, str]:
    """Start a job on host two, which lasts; its tree was started there."""
    more = f'[fleet]\nmove_after = "{MOVE_AFTER}s"\n'
    one, two = fleet.host("one", more), fleet.host("two", more)
    play = Play.on(fleet, one, two)
    play.answers(lasting={"wait": "go"})
    two("daemon", "start")
    two("repo", "add", REPO, "--remote", str(fleet.hub()))
    for name in ("lasting", "short"):
        play.agent(two, name, REPO)
    job = str(two.json("agent", "ask", "lasting", "look", "--repo", REPO)["job_id"])
    play.wait_for("begin", 1)
    one("daemon", "start")
    return play, one, two, job


def hosts(machine: Machine) -> dict[str, str]:
    return {row["name"]: row["state"] for row in machine.json("host", "list")}


def began(play: Play, job: str) -> list[tuple[str, str]]:
    """Return the attempts of a job that began, with their hosts."""
    return [(attempt, host) for mark, name, attempt, _, host in play.lines if (mark, name) == ("begin", job)]


def ask(machine: Machine, number: int) -> list[str]:
    """Start short jobs."""
    return [machine.json("agent", "ask", "short", "look", "--repo", REPO)["job_id"] for _ in range(number)]


def all_over(machine: Machine, play: Play, *jobs: str) -> None:
    for job in jobs:
        wait_for(partial(over, machine, job), play.state)
    assert [machine.json("job", "show", job)["state"] for job in jobs] == ["succeeded"] * len(jobs)


def test_a_host_without_postgresql_loses_its_jobs_and_holds_up_no_tree(fleet: Fleet) -> None:
    play, one, two, job = started(fleet)
    two.lines[1].cut()
    wait_for(lambda: ("2", "one") in began(play, job), play.state)
    others = ask(one, 4)
    all_over(one, play, *others)
    assert {host for job in others for _, host in began(play, job)} == {"one"}
    two.lines[1].mend()
    wait_for(lambda: hosts(one)["two"] == "works" and not moves.to_keep(one.seen.store, "two"), play.state)
    play.go()
    all_over(one, play, job)
    assert began(play, job) == [("1", "two"), ("2", "one")]
    assert play.marks("end")[job, "1"] == 0, "its agent was ended"


def test_a_host_without_temporal_keeps_its_jobs_and_gets_no_others(fleet: Fleet) -> None:
    play, one, two, job = started(fleet)
    two.lines[0].cut()
    since = time.monotonic()
    wait_for(lambda: hosts(one)["two"] == "held", play.state)
    others = ask(one, 4)
    all_over(one, play, *others)
    assert {host for job in others for _, host in began(play, job)} == {"one"}
    play.go()
    play.wait_for("end", 5)
    wait_for(lambda: time.monotonic() - since > 2 * MOVE_AFTER)
    two.lines[0].mend()
    all_over(one, play, job)
    assert began(play, job) == [("1", "two")]
    wait_for(lambda: hosts(one)["two"] == "works", play.state)
