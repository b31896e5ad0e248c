"""Real programs attack the machine they run on: each succeeds without a box, and in none (ruling N2)."""

import pytest

from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.enter import described, takes_first
from activities.runs import spawn
from tests.activities.boxes.attacks import ATTACKS, LEFT_BY_LANDLOCK, PREAMBLE
from tests.activities.boxes.world import World, put_key

pytestmark = pytest.mark.ruling("N2")

FROM_THE_START = {"use a descriptor that was left open", "change a control group"}
"""What the runs of this service never could, or only some machines let them."""


async def worked(world: World, box: Box | None, attack: str) -> bool:
    """Whether an attack that was really made came to something."""
    end = await world.play(box, f"{PREAMBLE}print('began', flush=True)\n{ATTACKS[attack]}")
    printed = end.stdout.read_text().split()
    assert printed[:1] == ["began"], end.stderr.read_text()
    return "got" in printed or any(world.tmp.rglob("planted"))


def started_anew(*, first: bool) -> None:
    """What a fork server forks has the keys of the thread that it was started by: this one's."""
    spawn.current(first=first).end()
    spawn.current(first=first)


@pytest.mark.parametrize("attack", [name for name in ATTACKS if name not in FROM_THE_START])
async def test_it_works_without_a_box(world: World, attack: str) -> None:
    put_key()
    started_anew(first=False)
    assert await worked(world, None, attack)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_it_fails_in_a_box(world: World, kind: BoxKind, attack: str) -> None:
    put_key()
    box = world.box(kind)
    if "keys" in attack:
        started_anew(first=takes_first(described(box, ("true",))))
    left = kind is BoxKind.LANDLOCK and box.uid is None and attack == LEFT_BY_LANDLOCK
    assert await worked(world, box, attack) is left


async def test_a_reader_writes_nothing_but_its_temporary_files(world: World, kind: BoxKind) -> None:
    script = "touch here && echo got; cat ../mine/seen; touch $TMPDIR/x && echo tmp"
    (world.work / "seen").write_text("seen\n")
    box = world.box(kind, cwd_writable=False)
    tmp = "/tmp" if kind is BoxKind.BWRAP else str(box.tmp)
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": tmp}
    end = await world.play(box, script, shell=True, env=env)
    assert end.stdout.read_text() == "seen\ntmp\n", end.stderr.read_text()


async def test_with_the_whole_network_abstract_sockets_stay_out_of_reach(world: World, kind: BoxKind) -> None:
    box = world.box(kind, Network.FULL)
    assert not await worked(world, box, "speak to an abstract socket")
    assert await worked(world, box, "speak to a service on loopback")
