"""A host that goes amid jobs at each station: queued, begun, running, and ended but not yet told (rulings Q5, B5)."""

from functools import partial

import pytest

from activities.store import attempt_rows
from tests.fleet.machines import Fleet, Machine
from tests.fleet.play import Play, over
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.ruling("Q5", "Q5.lost")]

MOVE_AFTER = 20
REPO = "acme/shop"
STATIONS = ("running", "told", "begun", "queued")


def started(fleet: Fleet) -> tuple[Play, Machine, Machine, dict[str, str]]:
    """Start a job for each station on the first of two hosts, which has two slots and then loses the server.

    The job `told` ends without Temporal learning it; its slot goes to `begun`, which Temporal does not learn either.
    """
    more = f'[fleet]\nmove_after = "{MOVE_AFTER}s"\n'
    one, two = fleet.host("one", more, max_parallel_jobs="2"), fleet.host("two", more)
    play = Play.on(fleet, one, two)
    play.answers(**{station: {"wait": "told-may-end" if station == "told" else "go"} for station in STATIONS})
    one("daemon", "start")
    one("repo", "add", REPO, "--remote", str(fleet.hub()))
    jobs = {}
    for station in STATIONS:
        play.agent(one, station, REPO)
        jobs[station] = str(one.json("agent", "ask", station, "look", "--repo", REPO)["job_id"])
        if station in STATIONS[:2]:
            wait_for(partial(began, play, jobs[station]), play.state)
    two("daemon", "start")
    one.lines[0].cut()
    play.go("told-may-end")
    wait_for(lambda: ended(two, jobs["told"]) and began(play, jobs["begun"]), play.state)
    assert began(play, jobs["queued"]) == []
    assert not two.tree(jobs["told"])["over"], "Temporal knows"
    return play, one, two, jobs


def began(play: Play, job: str) -> list[tuple[str, str]]:
    """Return the attempts of a job that began, with their hosts."""
    return [(attempt, host) for mark, name, attempt, _, host in play.lines if (mark, name) == ("begin", job)]


def ended(machine: Machine, job: str) -> bool:
    """Return whether the end of a job's first attempt is recorded."""
    row = attempt_rows.get(machine.seen.store, job, 1)
    return row is not None and row.ended_at is not None


def gone(one: Machine, how: str) -> None:
    if how == "killed":
        one.crash()
    one.cut_off()


def back(one: Machine, how: str) -> None:
    one.connect()
    if how == "killed":
        one("daemon", "start")


@pytest.mark.parametrize("how", ["killed", "cut off"])
def test_what_has_moved_when_the_host_comes_back(fleet: Fleet, how: str) -> None:
    play, one, two, jobs = started(fleet)
    gone(one, how)
    wait_for(lambda: all(("2", "two") in began(play, jobs[station]) for station in ("running", "begun")), play.state)
    back(one, how)
    play.go()
    all_over(two, jobs, play)
    assert began(play, jobs["told"]) == [("1", "one")]
    assert [host for _, host in began(play, jobs["queued"])] == ["two"]
    for station in ("running", "begun"):
        assert began(play, jobs[station]) == [("1", "one"), ("2", "two")]


def test_what_has_not_moved_when_the_host_comes_back(fleet: Fleet) -> None:
    play, one, two, jobs = started(fleet)
    gone(one, "cut off")
    back(one, "cut off")
    play.go()
    all_over(two, jobs, play)
    for station in ("running", "told", "begun"):
        assert began(play, jobs[station]) == [("1", "one")]
    assert len(began(play, jobs["queued"])) == 1


def all_over(machine: Machine, jobs: dict[str, str], play: Play) -> None:
    for job in jobs.values():
        wait_for(partial(over, machine, job), play.state)
    assert [machine.json("job", "show", job)["state"] for job in jobs.values()] == ["succeeded"] * len(jobs)
