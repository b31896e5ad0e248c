"""A host that must not work, and a machine that joins: the commands are those of the manual."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from bridge.machine import daemon_state
from cli import manual
from tests.fleet.machines import Fleet, Machine
from tests.fleet.play import Play, ended_well

pytestmark = pytest.mark.long


def names(machine: Machine) -> list[str]:
    return [host["name"] for host in machine.json("host", "list")]


def worker(machine: Machine) -> str:
    """Start only the worker, without what the daemon looks at first; return the reason why it ends."""
    command = (sys.executable, "-m", "activities.worker")
    done = subprocess.run(command, env=machine.environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.ruling("Q1")
def test_a_host_with_another_key_polls_nothing_and_says_what_to_type(fleet: Fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    one("daemon", "start")
    (two.home / "seal.key").write_bytes(b"x" * 32)
    for said in (two("daemon", "start", code=5).stderr, worker(two), two("doctor", code=1).stdout):
        assert "this home's seal.key is " in said
        assert f"scp one:.service/seal.key {two.home}/seal.key" in said
    assert names(one) == ["one"]
    (two.home / "seal.key").write_bytes((one.home / "seal.key").read_bytes())
    two("daemon", "start")
    assert names(one) == ["one", "two"]


@pytest.mark.ruling("Q1")
def test_the_name_of_a_host_that_works_is_not_taken_over(fleet: Fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two", host='"one"')
    one("daemon", "start")
    for said in (two("daemon", "start", code=5).stderr, worker(two), two("doctor", code=1).stdout):
        assert "the host name one is in use on another machine or in another home" in said
        assert 'set host = "ANOTHER_NAME" in [worker]' in said
    one("daemon", "stop")
    two("daemon", "start")
    assert "the host name one is in use" in one("daemon", "start", code=5).stderr


def commands(heading: str) -> list[str]:
    """Return the commands that the manual's page prints below a heading."""
    section = manual.text("hosts").partition(heading)[2].partition("\n## ")[0]
    found = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1].splitlines()


@pytest.mark.ruling("Q1.join")
def test_two_machines_make_a_fleet_by_the_commands_of_the_manual(fleet: Fleet) -> None:
    one, two = fleet.machine("one"), fleet.machine("two")
    for machine in (one, two):
        machine.home.mkdir(mode=0o700)
    one.configure()
    play = Play.on(fleet, one, two)
    replace(two, common="").configure()
    init, start, invite = (line.split()[1:] for line in commands("# Several hosts"))
    join, listing = (line.split()[1:] for line in commands("## A new machine"))
    one(*init)
    one(*start)
    printed = one(*invite).stdout.split()[1:]
    assert (len(printed), printed[:2]) == (len(join), join[:2])
    state = daemon_state.status(one.seen.home).state
    assert state is not None
    bridge = str(state.bridge_url)
    assert "has joined the fleet" in two(*printed[:3], "--from", bridge).stdout
    assert [line.split()[:2] for line in two(*listing).stdout.splitlines()[1:]] == [["one", "works"], ["two", "works"]]
    assert "was used already" in fleet.machine("three")(*printed[:3], "--from", bridge, code=3).stderr

    one("repo", "add", "acme/shop", "--remote", str(fleet.hub()))
    for name in ("one", "two"):
        play.agent(one, f"dev-{name}", "acme/shop", "--require", f"host:{name}")
    legs = [{"id": f"leg-{name}", "agent": f"dev-{name}", "action": "ask", "prompt": "look"} for name in ("one", "two")]
    play.answers(none={"delegations": legs})
    root = two.json("agent", "ask", "dev-one", "hello", "--repo", "acme/shop")["job_id"]
    ended_well(play, two, [root], 4)
    assert (play.places("leg-one"), play.places("leg-two")) == (["one"], ["two"])
