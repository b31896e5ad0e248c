"""The seal key is turned on two hosts while trees wait and run on both, also with one of them away (ruling Q10)."""

from functools import partial

import pytest

from activities.sealing import seal_key
from tests.fleet.machines import Fleet, Machine, checkout
from tests.fleet.play import Play

pytestmark = [pytest.mark.long, pytest.mark.ruling("Q10")]

QUESTION = {"human_questions": [{"id": "color", "prompt": "which?"}]}


def state(machine: Machine, root: str, wanted: str) -> bool:
    return bool(machine.tree(root)["task"]["state"] == wanted)


def test_a_key_is_turned_under_trees_of_two_hosts(fleet: Fleet) -> None:
    machines = one, two = fleet.host("one"), fleet.host("two")
    play = Play.on(fleet, *machines)
    for machine in machines:
        machine("repo", "add", f"acme/{machine.name}", str(checkout(machine)))
        play.agent(machine, f"scout-{machine.name}", f"acme/{machine.name}")
        machine("daemon", "start")

    def begin(on: Machine) -> str:
        words = ("agent", "ask", f"scout-{on.name}", "go", "--repo", f"acme/{on.name}")
        job: str = one.json(*words)["job_id"]
        return job

    play.answers(none=QUESTION)
    waiting = [begin(on) for on in machines]
    for root in waiting:
        one.wait_for(partial(state, one, root, "awaiting_human"))
    play.answers(none={"wait": "go"})
    running = begin(two)
    play.wait_for("begin", 3)
    former = seal_key.ensure(one.home)

    two("daemon", "stop")
    refused = one.run("host", "rotate-key")
    assert refused.returncode == 3
    assert "waits for two (no sign of life since" in refused.stderr
    assert seal_key.ensure(one.home) == former, "nothing seals with it yet"
    two("daemon", "start")
    turned = one.json("host", "rotate-key", "--wait")
    assert (turned["hosts"], turned["behind"]) == (["two"], [])
    assert seal_key.ensure(one.home) == seal_key.ensure(two.home) != former
    assert f"{waiting[0]}" in one("host", "remove-key", turned["former"], code=3).stderr

    play.go()
    for machine, root in zip(machines, waiting, strict=True):
        machine("resume", root, "answer", "color: red")
    for root in (*waiting, running):
        one.wait_for(partial(state, one, root, "done"))
    assert set(play.marks("begin").values()) == {1}
    one.wait_for(lambda: one.run("host", "remove-key", turned["former"]).returncode == 0)
    two.wait_for(lambda: seal_key.every(two.home) == (seal_key.ensure(two.home),))
