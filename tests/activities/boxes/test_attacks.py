"""Real programs attack the machine they run on: each attack works without a box, and in none (ruling N2)."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from activities.boxes import seccomp
from activities.boxes.box import Box, BoxKind, Network
from activities.runs import spawn
from tests.activities.boxes.attacks import (
    ATTACKS,
    BESIDE_TCP,
    FAMILIES,
    KERNEL,
    KEYS,
    LEFT_BY_LANDLOCK,
    METADATA,
    NOT_EVERYWHERE,
    PREAMBLE,
    all_of,
    for_network,
    left,
    that_worked,
)
from tests.activities.boxes.metadata import METADATA_WORKS
from tests.activities.boxes.world import World, put_key, why_not

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
    found = that_worked(end.stdout.read_text())
    assert not any(world.tmp.rglob("planted")), end.stderr.read_text()
    return found


async def test_each_works_without_a_box(world: World) -> None:
    put_key()
    started_anew()
    names = [name for name in ATTACKS if name not in FROM_THE_START]
    failed = {*names} - await worked_of(world, None, names)
    assert failed <= NOT_EVERYWHERE, "only this kernel or file system may lack what they need"


async def test_the_keys_of_the_service_are_out_of_reach(world: World, kind: BoxKind) -> None:
    put_key()
    started_anew()
    assert not await worked(world, world.box(kind), KEYS)


@pytest.mark.long
@pytest.mark.parametrize("attack", [name for name in ATTACKS if name != KEYS])
async def test_it_fails_in_a_box(world: World, kind: BoxKind, attack: str) -> None:
    box = world.box(kind)
    left = kind is BoxKind.LANDLOCK and box.uid is None and attack == LEFT_BY_LANDLOCK
    assert await worked(world, box, attack) is left


@pytest.mark.parametrize("network", Network)
async def test_all_of_them_fail_with_every_network_but_for_what_is_known(
    world: World, kind: BoxKind, network: Network
) -> None:
    box = world.box(kind, network)
    known, some = left(kind, network, same_account=box.uid is None)
    assert await worked_of(world, box, for_network(network, {KEYS})) - some == known


async def test_metadata_and_kernel_are_out_of_reach_for_a_root_that_has_no_other_account(world: World) -> None:
    if why := why_not(BoxKind.LANDLOCK):
        pytest.skip(why)
    assert await worked_of(world, world.box(BoxKind.LANDLOCK, uid=None), METADATA | KERNEL) == set()


@pytest.mark.parametrize("network", [Network.MODEL, Network.FULL])
async def test_other_families_of_sockets_take_the_whole_network(world: World, kind: BoxKind, network: Network) -> None:
    there = await worked_of(world, None, FAMILIES) - {"speak to network devices"}  # it needs rights
    assert await worked_of(world, world.box(kind, network), FAMILIES) == (there if network is Network.FULL else set())


@pytest.mark.parametrize("network", [Network.NONE, Network.MODEL])
async def test_without_a_network_of_its_own_landlock_s_box_has_tcp_to_its_proxy_alone(
    world: World, network: Network
) -> None:
    if why := why_not(BoxKind.LANDLOCK):
        pytest.skip(why)
    assert await worked_of(world, world.box(BoxKind.LANDLOCK, network, own_network=False), BESIDE_TCP) == set()


async def test_usual_families_of_sockets_are_there(world: World, kind: BoxKind) -> None:
    script = """
import socket
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6): socket.socket(family)
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); socket.socketpair(); print(socket.if_nameindex()[0][1])
"""
    end = await world.play(world.box(kind), script)
    assert end.stdout.read_text() == "lo\n", end.stderr.read_text()


async def test_a_program_can_change_metadata_of_its_own_files(world: World, kind: BoxKind) -> None:
    if kind is BoxKind.BWRAP:
        pytest.skip("nothing is decided there")
    end = await world.play(world.box(kind, uid=None), PREAMBLE + METADATA_WORKS)
    assert end.stdout.read_text() == "done\n", end.stderr.read_text()


async def test_a_proxy_is_begun_while_calls_are_decided(world: World) -> None:
    if why := why_not(BoxKind.LANDLOCK):
        pytest.skip(why)
    script = """
import threading
def flood():
    open("f", "w").close()
    while True: os.chmod("f", 0o600)
for _ in range(4): threading.Thread(target=flood, daemon=True).start()
with socket.create_connection(("127.0.0.1", int(os.environ["HTTP_PROXY"].rpartition(":")[2]))) as one:
    one.sendall(b"CONNECT example.com:443 HTTP/1.1\\r\\n\\r\\n"); print(one.recv(12).decode())
"""
    end = await world.play(world.box(BoxKind.LANDLOCK, Network.MODEL), PREAMBLE + script)
    assert end.stdout.read_text() == "HTTP/1.1 403\n", end.stderr.read_text()


def test_without_a_listener_changes_of_metadata_are_refused(tmp_path: Path) -> None:
    """A container around the service may have one, and the kernel allows no second one."""
    script = f"""
import os, sys
sys.path.append({str(Path(seccomp.__file__).parents[2])!r})
from activities.boxes import kernel, seccomp
from activities.boxes.box import Box, BoxKind, Network
from pathlib import Path
kernel.no_new_privileges()
here = Path({str(tmp_path)!r})
assert seccomp._set_filter(seccomp.NEW_LISTENER, [(seccomp.ANSWER, 0, 0, seccomp.ALLOWED)]) >= 0
assert seccomp.install(Box(BoxKind.LANDLOCK, Network.NONE, here, here, here)) is None
try: os.chmod(here, 0o700)
except PermissionError: print("refused")
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "refused\n", done.stderr


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
