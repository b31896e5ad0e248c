"""Runs in boxes start, end and are stopped like any other (ruling N2)."""

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.programs import needed
from activities.runs.os_processes import children, marked
from activities.runs.supervised_run import Claim, mark_of, run, stop
from activities.runs.supervisor import EndKind
from tests.activities.boxes.world import World, begun, needs_bubblewrap, why_not
from tests.waiting import until

pytestmark = pytest.mark.ruling("N2")


async def test_exit_code_prompt_and_streams(world: World, kind: BoxKind) -> None:
    script = "cat /dev/stdin; echo oops > /dev/stderr; exit 7"
    end = await world.play(world.box(kind), script, shell=True, prompt=b"the prompt")
    assert (end.kind, end.exit_code, end.signal, end.survivors) == (EndKind.EXITED, 7, None, 0)
    assert end.stdout.read_text() == "the prompt"
    assert end.stderr.read_text() == "oops\n"


async def test_death_by_signal_is_told(world: World, kind: BoxKind) -> None:
    end = await world.play(world.box(kind), "kill -SEGV $$", shell=True)
    assert (end.kind, end.exit_code, end.signal) == (EndKind.EXITED, None, signal.SIGSEGV)


async def test_a_stop_is_heard_by_the_program(world: World, kind: BoxKind) -> None:
    script = "trap 'echo heard; exit 3' INT; echo up; while :; do sleep 0.05; done"
    request = world.request(world.box(kind), script, shell=True, grace_seconds=60.0)
    task = await begun(request)
    await stop(request.run_dir, 60.0)
    end = await task
    assert (end.kind, end.exit_code, end.survivors) == (EndKind.CANCELLED, 3, 0)
    assert end.stdout.read_text() == "up\nheard\n"


async def test_a_program_that_ignores_signals_is_killed_with_its_children(world: World, kind: BoxKind) -> None:
    script = (
        "trap '' INT TERM; (setsid sh -c 'trap \"\" INT TERM; while :; do sleep 0.05; done' &); echo up; "
        "while :; do sleep 0.05; done"
    )
    request = world.request(world.box(kind, Network.MODEL), script, shell=True)
    task = await begun(request)
    await stop(request.run_dir, 0.3)
    end = await task
    assert (end.kind, end.survivors) == (EndKind.CANCELLED, 0)
    assert not marked(mark_of(request.run_dir))


@pytest.mark.parametrize("by_us", [True, False])
async def test_a_supervisor_that_is_root_goes_into_a_box_with_a_root_of_its_own_itself(
    world: World, by_us: bool
) -> None:
    """The supervisor keeps only `no_new_privs`: no program gains rights by a set-uid bit. Its files, network and
    account are as before. If it makes a box without bubblewrap, it is the first process there, and stays in its
    pid and IPC namespaces.
    """
    world.own_root = by_us
    if (box := world.box(BoxKind.BWRAP, Network.FULL)).uid is None or why_not(BoxKind.BWRAP):
        pytest.skip("only root goes in there itself")
    if by_us and not box.own_root:
        pytest.skip("a box is made by bubblewrap only here")
    if not by_us:
        needs_bubblewrap()
    request = world.request(box, "echo up; exec sleep 60", shell=True)
    task = await begun(request)
    claim = Claim.read(request.run_dir)
    assert claim is not None
    there = Path(f"/proc/{claim.pid}")
    names = ("mnt", "net", *(() if by_us else ("pid", "ipc", "uts")))
    ours = namespaces(Path("/proc/self"), names)
    await until(lambda: namespaces(there, names) == ours)  # it goes back while its program begins
    told = status_of(there)
    assert (told["Uid"].split(), told["Gid"].split()) == (["0"] * 4, ["0"] * 4)
    assert told["Groups"].split() == [str(each) for each in os.getgroups()]
    assert told["NoNewPrivs"] == "1"
    assert told["NSpid"].split()[1:] == (["1"] if by_us else [])
    assert told["CapEff"] == status_of(Path("/proc/self"))["CapEff"]
    await stop(request.run_dir, 5.0)
    await task


def status_of(process: Path) -> dict[str, str]:
    return dict(line.split(":\t") for line in (process / "status").read_text().splitlines())


def namespaces(process: Path, names: Iterable[str]) -> list[str]:
    return [os.readlink(process / "ns" / name) for name in names]


def mounts_around(world: World) -> list[str]:
    """Return the mounts of this process, without those that other tests make in their folders meanwhile."""
    folders, own = f" {world.tmp.parent.parent}/", f" {world.tmp}/"
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if folders not in line or own in line]


async def test_bubblewrap_is_spared_the_mounts_that_its_boxes_have_no_use_for(world: World) -> None:
    world.own_root = False
    if (box := world.box(BoxKind.BWRAP)).uid is None or why_not(BoxKind.BWRAP):
        pytest.skip("only root lays anything out before bubblewrap does")
    needs_bubblewrap()
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


async def test_a_program_that_ends_leaves_nothing_behind(world: World, kind: BoxKind) -> None:
    request = world.request(world.box(kind), "(setsid sleep 600 &) ; echo up", shell=True)
    end = await run(request)
    assert (end.kind, end.exit_code, end.survivors) == (EndKind.EXITED, 0, 0)
    assert not marked(mark_of(request.run_dir))


async def test_the_supervisor_s_death_is_the_end_of_all_of_it(world: World, kind: BoxKind) -> None:
    request = world.request(world.box(kind), "echo up; while :; do sleep 0.05; done", shell=True)
    task = await begun(request)
    claim = Claim.read(request.run_dir)
    assert claim
    assert claim.pid
    os.kill(claim.pid, signal.SIGKILL)
    end = await task
    assert (end.kind, end.survivors) == (EndKind.UNKNOWN, 0)
    await until(lambda: not marked(mark_of(request.run_dir)))


async def test_a_program_that_is_not_there_is_not_started(world: World, kind: BoxKind) -> None:
    end = await run(world.request(world.box(kind), "", argv=("no-such-program",)))
    assert end.kind is EndKind.NOT_STARTED
    assert "no-such-program" in end.error


async def test_a_box_that_cannot_be_made_starts_nothing_and_says_why(world: World, kind: BoxKind) -> None:
    gone = world.tmp / "gone"
    end = await world.play(world.box(kind, Network.NONE, read=(gone,)), "echo up", shell=True)
    assert "up" not in end.stdout.read_text()
    assert end.kind is EndKind.NOT_STARTED or end.exit_code
    assert str(gone) in end.error + end.stderr.read_text()


async def test_a_registered_program_and_what_it_needs_are_there(world: World, kind: BoxKind) -> None:
    """A script with the interpreter of a virtual environment, in a folder that is not lent."""
    tools = world.tmp / "user" / "tools"
    tools.mkdir()
    (tools / "agent").write_text(f"#!{sys.executable}\nimport json, sys; print(sys.prefix)\n")
    (tools / "agent").chmod(0o755)
    (tools / "private").write_text("not handed in")
    command = (str(tools / "agent"),)
    box = world.box(kind, read=needed(command, None, world.tmp / "user"))
    end = await run(world.request(box, "", argv=command))
    assert end.stdout.read_text() == f"{sys.prefix}\n", end.stderr.read_text()
    seen = await world.play(box, f"ls {tools}; cat {tools}/private", shell=True)
    assert "not handed in" not in seen.stdout.read_text()


async def test_files_in_the_work_folder_remain_and_others_are_discarded(world: World) -> None:
    if why := why_not(BoxKind.BWRAP):
        pytest.skip(why)
    script = "echo work > kept; mkdir -p ~/.cache && echo x > ~/.cache/y; echo z > /tmp/boxes-z; ls -A / ; id -un"
    end = await world.play(world.box(BoxKind.BWRAP), script, shell=True)
    assert end.exit_code == 0, end.stderr.read_text()
    assert (world.work / "kept").read_text() == "work\n"
    assert not (world.tmp / "user" / ".cache").exists()
    assert not Path("/tmp/boxes-z").exists()
    assert not {"srv", "boot", "sys", "media"} & set(end.stdout.read_text().split())


def test_a_box_travels_as_it_is() -> None:
    box = Box(
        BoxKind.BWRAP,
        Network.MODEL,
        Path("/a"),
        Path("/b"),
        Path("/c"),
        hosts=("x",),
        scratch=(Path("/e"),),
        read=(Path("/d"),),
        uid=3,
    )
    told = box.as_json()
    assert Box.from_json(told) == box
    del told["own_root"], told["program"], told["leaks"]
    assert Box.from_json(told) == box, "a run that an earlier release began"
