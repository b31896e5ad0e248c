"""Real programs attack the machine they run on: each attack works without a box, and in none (ruling N2)."""

from collections.abc import Iterable

import pytest

from activities.boxes.box import Box, Network
from activities.runs import spawn
from tests.activities.boxes.attacks import (
    ATTACKS,
    FAMILIES,
    KEYS,
    LEFT,
    NOT_EVERYWHERE,
    PREAMBLE,
    all_of,
    for_network,
    left,
    that_worked,
)
from tests.activities.boxes.world import World, put_key

pytestmark = pytest.mark.ruling("N2")

FROM_THE_START = {"use a descriptor that was left open", "change a control group"}
"""Attacks that never work in this service's runs, or only on some machines."""


async def worked(world: World, box: Box | None, attack: str) -> bool:
    """Return whether an attack, once it has begun, worked."""
    end = await world.play(box, f"{PREAMBLE}print('began', flush=True)\n{ATTACKS[attack]}")
    printed = end.stdout.read_text().split()
    assert printed[:1] == ["began"], end.stderr.read_text()
    return "got" in printed or any(world.tmp.rglob("planted"))


def started_anew() -> None:
    """Restart the fork server: its supervisors inherit the keyring of the thread that started it, which is this one."""
    spawn.current().end()
    spawn.current()


async def worked_of(world: World, box: Box | None, names: Iterable[str]) -> set[str]:
    """Return those of these attacks that worked, made in one run."""
    end = await world.play(box, all_of(names, boxed=box is not None))
    escaped = that_worked(end.stdout.read_text())
    assert not any(world.tmp.rglob("planted")), end.stderr.read_text()
    return escaped


async def test_each_works_without_a_box(world: World) -> None:
    put_key()
    started_anew()
    names = [name for name in ATTACKS if name not in FROM_THE_START]
    failed = {*names} - await worked_of(world, None, names)
    assert failed <= NOT_EVERYWHERE, "only this kernel or file system may lack what they need"


async def test_the_keys_of_the_service_are_out_of_reach(world: World) -> None:
    put_key()
    started_anew()
    assert not await worked(world, world.box(), KEYS)


@pytest.mark.long
@pytest.mark.parametrize("attack", [name for name in ATTACKS if name != KEYS])
async def test_it_fails_in_a_box(world: World, attack: str) -> None:
    box = world.box()
    assert await worked(world, box, attack) is (box.uid is None and attack == LEFT)


@pytest.mark.parametrize("network", Network)
async def test_all_of_them_fail_with_every_network_but_for_what_is_known(world: World, network: Network) -> None:
    box = world.box(network)
    known, some = left(network, same_account=box.uid is None)
    assert await worked_of(world, box, for_network(network, {KEYS})) - some == known


@pytest.mark.parametrize("network", [Network.MODEL, Network.FULL])
async def test_other_families_of_sockets_take_the_whole_network(world: World, network: Network) -> None:
    there = await worked_of(world, None, FAMILIES) - {"speak to network devices"}  # it needs rights
    assert await worked_of(world, world.box(network), FAMILIES) == (there if network is Network.FULL else set())


async def test_usual_families_of_sockets_are_there(world: World) -> None:
    script = """
import socket
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6): socket.socket(family)
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); socket.socketpair(); print(socket.if_nameindex()[0][1])
"""
    end = await world.play(world.box(), script)
    assert end.stdout.read_text() == "lo\n", end.stderr.read_text()


async def test_a_reader_writes_nothing_but_its_temporary_files(world: World) -> None:
    script = "touch here && echo got; cat ../mine/seen; touch $TMPDIR/x && echo tmp"
    (world.work / "seen").write_text("seen\n")
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp"}
    end = await world.play(world.box(cwd_writable=False), script, shell=True, env=env)
    assert end.stdout.read_text() == "seen\ntmp\n", end.stderr.read_text()


async def test_with_the_whole_network_abstract_sockets_stay_out_of_reach(world: World) -> None:
    box = world.box(Network.FULL)
    assert not await worked(world, box, "speak to an abstract socket")
    assert await worked(world, box, "speak to a service on loopback")
