"""Runs in boxes start, end and are stopped like any other (ruling N2)."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from activities.boxes.box import Box, Network
from activities.boxes.bwrap import INSIDE_UID
from activities.boxes.programs import required_files
from activities.runs.os_processes import children, with_mark
from activities.runs.supervised_run import Claim, mark_of, run, stop
from activities.runs.supervisor import EndKind
from tests.activities.boxes.world import World, begun
from tests.activities.runs.processes import without_fork_server
from tests.waiting import until

pytestmark = pytest.mark.ruling("N2")


async def test_exit_code_prompt_and_streams(world: World) -> None:
    script = "cat /dev/stdin; echo oops > /dev/stderr; exit 7"
    end = await world.play(world.box(), script, shell=True, prompt=b"the prompt")
    assert (end.kind, end.exit_code, end.signal, end.survivors) == (EndKind.EXITED, 7, None, 0)
    assert end.stdout.read_text() == "the prompt"
    assert end.stderr.read_text() == "oops\n"


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGTERM, signal.SIGKILL])
async def test_death_by_signal_is_told(world: World, number: int) -> None:
    end = await world.play(world.box(), f"kill -{number} $$", shell=True)
    assert (end.kind, end.exit_code, end.signal) == (EndKind.EXITED, None, number)


async def test_a_stop_is_heard_by_the_program(world: World) -> None:
    script = "trap 'echo heard; exit 3' INT; echo up; while :; do sleep 0.05; done"
    request = world.request(world.box(), script, shell=True, grace_seconds=60.0)
    task = await begun(request)
    await stop(request.run_dir, 60.0)
    end = await task
    assert (end.kind, end.exit_code, end.survivors) == (EndKind.CANCELLED, 3, 0)
    assert end.stdout.read_text() == "up\nheard\n"


async def test_a_program_that_ignores_signals_is_killed_with_its_children(world: World) -> None:
    script = (
        "trap '' INT TERM; (setsid sh -c 'trap \"\" INT TERM; while :; do sleep 0.05; done' &); echo up; "
        "while :; do sleep 0.05; done"
    )
    request = world.request(world.box(Network.MODEL), script, shell=True)
    task = await begun(request)
    await stop(request.run_dir, 0.3)
    end = await task
    assert (end.kind, end.survivors) == (EndKind.CANCELLED, 0)
    assert not with_mark(mark_of(request.run_dir))


SEEN = """
import os, socket
with socket.create_connection(("127.0.0.1", 3128)) as proxy:
    proxy.sendall(b"nonsense\\r\\n\\r\\n")
    assert proxy.recv(1000)
others = {int(each) for each in os.listdir("/proc") if each.isdigit()} - {os.getpid()}
print([open(f"/proc/{pid}/comm").read() for pid in others])
"""


async def test_a_program_sees_neither_its_supervisor_nor_the_proxy(world: World) -> None:
    """Both are in the machine's network, which `/proc/<pid>/net` would show."""
    box = world.box(Network.MODEL)
    assert await said(world, box, SEEN) == ["['bwrap\\n']"]


async def test_a_program_has_no_capability_and_gets_none(world: World) -> None:
    box = world.box()
    lines = await said(world, box, "print(open('/proc/self/status').read())")
    status = dict(line.split(":\t") for line in lines if line)
    assert {status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    if box.uid is not None:
        assert status["Uid"].split() == [str(INSIDE_UID)] * 4
        assert status["Groups"].strip() == ""


async def test_without_a_fork_server_the_box_is_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    without_fork_server(monkeypatch)
    assert await said(world, world.box(Network.MODEL), SEEN) == ["['bwrap\\n']"]


KEYS = """
import ctypes, os, sys
number = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
found = libc.syscall(number, 10, -4, b"user", b"boxes-left", 0)  # a search of the account's keyring
libc.syscall(number - 2, b"user", b"boxes-left", b"open", 4, -4)
print("found" if found >= 0 else "not found")
"""


async def test_a_run_leaves_no_key_to_the_next_one(world: World) -> None:
    """All processes of an account share its keyring, and agents share an account."""
    for _ in range(2):
        assert await said(world, world.box(), KEYS) == ["not found"]


async def said(world: World, box: Box, script: str) -> list[str]:
    end = await world.play(box, script)
    assert end.exit_code == 0, end.error + end.stderr.read_text()
    return end.stdout.read_text().splitlines()


def mounts_around(world: World) -> list[str]:
    """Return the mounts of this process, without those that other tests make in their folders meanwhile."""
    folders, own = f" {world.tmp.parent.parent}/", f" {world.tmp}/"
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if folders not in line or own in line]


async def test_bubblewrap_is_spared_the_mounts_that_its_boxes_have_no_use_for(world: World) -> None:
    if (box := world.box()).uid is None:
        pytest.skip("only root lays anything out before bubblewrap does")
    if " - sysfs " not in " ".join(ours := mounts_around(world)):
        pytest.skip("this machine has no /sys")
    request = world.request(box, "ls /sys; echo up; sleep 600", shell=True)
    task, claim = await begun(request), Claim.read(request.run_dir)
    assert claim
    [bwrap] = children(claim.pid or 0)
    theirs = Path(f"/proc/{bwrap}/mountinfo").read_text()
    assert " - sysfs " not in theirs
    assert " /proc " in theirs
    assert mounts_around(world) == ours
    await stop(request.run_dir, 0.2)
    assert "/sys" in (await task).stderr.read_text(), "there is none inside"


async def test_a_program_that_ends_leaves_nothing_behind(world: World) -> None:
    hidden = "(setsid sh -c 'env -i sleep 600 & env -i sleep 600' &); (env -i setsid sleep 600 &)"
    end = await run(world.request(world.box(), f"{hidden}; readlink /proc/self/ns/pid", shell=True))
    assert (end.kind, end.exit_code, end.survivors) == (EndKind.EXITED, 0, 0)
    assert not members(end.stdout.read_text().split()[-1])


def members(namespace: str) -> list[str]:
    """Return the living processes of a pid namespace, `pid:[NUMBER]`."""
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has ended by now
            if os.readlink(f"/proc/{pid}/ns/pid") == namespace:
                pids.append(pid)
    return pids


async def test_the_supervisor_s_death_is_the_end_of_all_of_it(world: World) -> None:
    script = "(env -i setsid sleep 600 &); readlink /proc/self/ns/pid; while :; do sleep 0.05; done"
    request = world.request(world.box(), script, shell=True)
    task = await begun(request)
    claim = Claim.read(request.run_dir)
    assert claim
    assert claim.pid
    inside = (request.run_dir / "stdout.log").read_text().strip()
    assert len(members(inside)) >= 3
    os.kill(claim.pid, signal.SIGKILL)
    end = await task
    assert (end.kind, end.survivors) == (EndKind.UNKNOWN, 0)
    await until(lambda: not members(inside))


async def test_a_program_that_is_not_there_is_not_started(world: World) -> None:
    end = await run(world.request(world.box(), "", argv=("no-such-program",)))
    assert end.kind is EndKind.NOT_STARTED
    assert "no-such-program" in end.error


async def test_a_box_that_cannot_be_made_starts_nothing_and_says_why(world: World) -> None:
    gone = world.tmp / "gone"
    end = await world.play(world.box(Network.NONE, read=(gone,)), "echo up", shell=True)
    assert "up" not in end.stdout.read_text()
    assert end.kind is EndKind.NOT_STARTED or end.exit_code
    assert str(gone) in end.error + end.stderr.read_text()


async def test_a_registered_program_and_what_it_needs_are_there(world: World) -> None:
    """A script with the interpreter of a virtual environment, in a folder that is not lent."""
    tools = world.tmp / "user" / "tools"
    tools.mkdir()
    (tools / "agent").write_text(f"#!{sys.executable}\nimport json, sys; print(sys.prefix)\n")
    (tools / "agent").chmod(0o755)
    (tools / "private").write_text("not handed in")
    command = (str(tools / "agent"),)
    box = world.box(read=required_files(command, None, world.tmp / "user"))
    end = await run(world.request(box, "", argv=command))
    assert end.stdout.read_text() == f"{sys.prefix}\n", end.stderr.read_text()
    seen = await world.play(box, f"ls {tools}; cat {tools}/private", shell=True)
    assert "not handed in" not in seen.stdout.read_text()


async def test_files_in_the_work_folder_remain_and_others_are_discarded(world: World) -> None:
    script = "echo work > kept; mkdir -p ~/.cache && echo x > ~/.cache/y; echo z > /tmp/boxes-z; ls -A / ; id -un"
    end = await world.play(world.box(), script, shell=True)
    assert end.exit_code == 0, end.stderr.read_text()
    assert (world.work / "kept").read_text() == "work\n"
    assert not (world.tmp / "user" / ".cache").exists()
    assert not Path("/tmp/boxes-z").exists()
    assert not {"srv", "boot", "sys", "media"} & set(end.stdout.read_text().split())


def test_a_box_travels_as_it_is() -> None:
    box = Box(
        Network.MODEL,
        Path("/a"),
        Path("/b"),
        hosts=("x",),
        scratch=(Path("/e"),),
        read=(Path("/d"),),
        uid=3,
    )
    assert Box.from_json(json.loads(json.dumps(box.as_json()))) == box
