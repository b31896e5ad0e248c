"""Two hosts are upgraded one after the other, with trees that wait and trees that run in between."""

import json
from typing import Any

import pytest

from tests.fleet.machines import Fleet, Machine, checkout
from tests.fleet.play import Play, over

pytestmark = [pytest.mark.long, pytest.mark.ruling("Q8")]

OLD, NEW = "9.0.0", "9.1.0"
QUESTION = {"human_questions": [{"id": "color", "prompt": "which?"}]}


@pytest.fixture
def machines(fleet: Fleet) -> tuple[Machine, Machine]:
    """Start two hosts on the old release, each with a repository and an agent."""
    one, two = fleet.host("one"), fleet.host("two")
    play = Play.on(fleet, one, two)
    play.answers(none=QUESTION)
    for machine in (one, two):
        machine.install(OLD)
        machine("repo", "add", f"acme/{machine.name}", str(checkout(machine)))
        play.agent(machine, f"scout-{machine.name}", f"acme/{machine.name}")
        machine("daemon", "start")
    return one, two


def asks(machine: Machine, on: Machine) -> str:
    """Start a tree on a host, until it waits for a person."""
    words = ("agent", "ask", f"scout-{on.name}", "go", "--repo", f"acme/{on.name}")
    root: str = machine.json(*words)["job_id"]
    machine.wait_for(lambda: machine.tree(root)["task"]["state"] == "awaiting_human")
    return root


def goes_on(machine: Machine, root: str) -> None:
    machine("resume", root, "answer", "color: red")
    machine.wait_for(lambda: over(machine, root))
    assert machine.tree(root)["task"]["state"] == "done"


def upgrade(machine: Machine, release: str) -> None:
    machine("daemon", "stop")
    machine.install(release)
    machine("daemon", "start")


def says(machine: Machine) -> list[dict[str, Any]]:
    """Return what doctor says of releases."""
    findings = machine.run("doctor", "--json")
    return [finding for finding in json.loads(findings.stdout)["findings"] if finding["about"] == "releases"]


def test_trees_that_wait_go_on_while_hosts_are_upgraded_one_after_the_other(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    assert [finding["says"] for finding in says(one)] == [f"{OLD} takes the steps of all trees"]
    waiting = [asks(one, on) for on in (one, two, one, two)]
    upgrade(one, NEW)
    ahead, leads = says(one)
    assert ahead["says"].startswith(f"one runs release {NEW}")
    assert f"{NEW} takes the steps of trees once two hosts run it" in ahead["fix"]
    assert leads["says"] == f"{OLD} takes the steps of all trees"
    goes_on(one, waiting[0])
    goes_on(two, waiting[1])
    between = asks(two, two)
    upgrade(two, NEW)
    for root in (*waiting[2:], between):
        goes_on(two, root)
    assert [finding["says"] for finding in says(two)] == [f"{NEW} takes the steps of all trees"]


def test_the_death_of_the_first_upgraded_host_stops_no_tree(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    waiting = asks(two, two)
    upgrade(one, NEW)
    one.crash()
    goes_on(two, waiting)
    assert [finding["says"] for finding in says(two)][-1] == f"{OLD} takes the steps of all trees", "all the time"


def test_a_release_without_a_host_gives_the_lead_back(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    two("daemon", "stop")
    upgrade(one, NEW)
    two("daemon", "start")
    behind, leads = says(one)
    assert behind["says"].startswith(f"two runs release {OLD}")
    assert f"pip install -U delegation-service=={NEW}" in behind["fix"]
    assert leads["says"].startswith(f"{NEW} takes the steps of all trees"), "as the only host that ran"
    waiting = asks(two, two)
    one("daemon", "stop")
    goes_on(two, waiting)
    assert [finding["says"] for finding in says(two)][-1].startswith(f"{OLD} takes the steps of all trees")


def test_all_trees_go_on_after_all_hosts_stopped_and_were_upgraded(machines: tuple[Machine, Machine]) -> None:
    one = machines[0]
    waiting = [asks(one, on) for on in machines]
    for machine in machines:
        machine("daemon", "stop")
        machine.install(NEW)
    for machine in machines:
        machine("daemon", "start")
    for root in waiting:
        goes_on(one, root)
