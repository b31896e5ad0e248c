"""The supervised group, with small programs as members."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from activities.runs import signs_of_life
from activities.settings import ready
from bridge.daemon import die_with_parent
from bridge.daemon.member import MemberFailedError, MemberProcess, MemberProgram, until
from bridge.daemon.supervision import Backoff, MemberGroup
from bridge.machine.daemon_state import ChildPhase, ChildState, GroupPhase
from tests.bridge.daemon.conftest import is_gone, pid_in
from tests.starved import starved
from tests.waiting import wait_for

SAY = "import os, pathlib, signal, subprocess, sys, time\nme = pathlib.Path(sys.argv[1])\n"
GOOD = """
def bye(*_):
    open(me.parent / 'order', 'a').write(f'-{me.name} ')
    sys.exit()
signal.signal(signal.SIGTERM, bye)
open(me.parent / 'order', 'a').write(f'+{me.name} ')
me.write_text(str(os.getpid()))
time.sleep(600)
"""
GOOD_ONCE = (
    """
if (me.parent / 'again').exists():
    sys.exit(7)
(me.parent / 'again').touch()
"""
    + GOOD
)
DEAF = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
me.write_text(str(os.getpid()))
time.sleep(600)
"""
BROKEN = "print('out of cheese')\nsys.exit(7)"
SILENT = "print('thinking', flush=True)\ntime.sleep(600)"
PARENT = """
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
(me.parent / 'grandchild').write_text(str(child.pid))
me.write_text(str(os.getpid()))
time.sleep(600)
"""
QUICK = Backoff(first=0.02, most=0.1, rejoins_within=0.5)


class Watcher:
    """Records every announcement."""

    def __init__(self) -> None:
        self.said: list[tuple[GroupPhase, tuple[ChildState, ...]]] = []

    def __call__(self, phase: GroupPhase, children: tuple[ChildState, ...]) -> None:
        self.said.append((phase, children))

    @property
    def phase(self) -> GroupPhase:
        return self.said[-1][0] if self.said else GroupPhase.STARTING

    def child(self, name: str) -> ChildState:
        return next(child for child in self.said[-1][1] if child.name == name)


BEATS = """
import asyncio, re, threading
async def beat():
    while True:
        spent = time.process_time() + float(os.environ.get('WORK', 0))
        while time.process_time() < spent:
            pass
        me.touch()
        await asyncio.sleep(0.05)
def hog(*_):
    threading.Thread(target=re.match, args=('(x+x+)+y', 'x' * 60)).start()
signal.signal(signal.SIGUSR1, hog)
me.write_text(str(os.getpid()))
asyncio.run(beat())
"""
"""Beats on its event loop, after `WORK` seconds of processor time for each beat; SIGUSR1 starts a thread that keeps the
interpreter's lock."""
PATIENCE = 1.0


def member(folder: Path, name: str, program: str, *, patience: float = 30.0, grace: float = 10.0) -> MemberProgram:
    """Build a member that is ready once it wrote its file."""

    async def ready(_pid: int) -> None:
        await until((folder / name).exists)

    return MemberProgram(
        name=name,
        argv=(sys.executable, "-c", SAY + program, str(folder / name)),
        env=dict(os.environ),
        ready=ready,
        log=folder / "logs" / f"{name}.log",
        cwd=folder,
        patience=patience,
        grace=grace,
    )


async def while_running(group: MemberGroup, act: Callable[[], None]) -> None:
    """Run the group, act on it from outside, stop it."""
    stop = asyncio.Event()
    running = asyncio.create_task(group.run(stop))
    try:
        await asyncio.to_thread(act)
    finally:
        stop.set()
        await running


async def test_members_start_in_order_and_stop_in_reverse(tmp_path: Path) -> None:
    watcher = Watcher()
    group = MemberGroup([member(tmp_path, "a", GOOD), member(tmp_path, "b", GOOD)], watcher)
    await while_running(group, lambda: wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "all members"))
    assert (tmp_path / "order").read_text() == "+a +b -b -a "
    assert watcher.phase is GroupPhase.STOPPING
    assert {child.phase for child in watcher.said[-1][1]} == {ChildPhase.STOPPED}


async def test_a_member_that_is_killed_is_started_again_and_the_group_says_so_meanwhile(tmp_path: Path) -> None:
    watcher = Watcher()

    def kill_it() -> None:
        wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "all members")
        pid = pid_in(tmp_path / "a")
        (tmp_path / "a").unlink()
        os.kill(pid, 9)
        wait_for(lambda: watcher.child("a").restarts == 1 and watcher.phase is GroupPhase.RUNNING, "a restart")

    await while_running(MemberGroup([member(tmp_path, "a", GOOD)], watcher, QUICK), kill_it)
    until_when = [child.again_at for _, (child,) in watcher.said]
    assert any(until_when)
    assert until_when[-1] is None, "it waits no more"
    downs = [children[0].note for phase, children in watcher.said if phase is GroupPhase.DEGRADED and children[0].note]
    assert "ended (killed by SIGKILL); starting it again in 0.02 s" in downs


async def test_a_member_that_keeps_crashing_is_tried_ever_more_slowly_and_harms_no_other(tmp_path: Path) -> None:
    watcher = Watcher()

    def break_it() -> None:
        wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "all members")
        os.kill(pid_in(tmp_path / "bad"), 9)
        wait_for(lambda: watcher.child("bad").restarts >= 5, "five restarts")
        assert watcher.phase is GroupPhase.DEGRADED

    members = [member(tmp_path, "good", GOOD), member(tmp_path, "bad", GOOD_ONCE)]
    await while_running(MemberGroup(members, watcher, QUICK), break_it)
    notes = [child.note for _, (_, child) in watcher.said]
    waits = list(dict.fromkeys(note.rpartition(" in ")[2] for note in notes if " in " in note))
    assert waits == ["0.02 s", "0.04 s", "0.08 s", "0.1 s"]
    assert any("ended (status 7)" in note for note in notes)
    assert watcher.child("good").restarts == 0


async def test_a_member_that_never_becomes_ready_is_tried_ever_more_slowly_however_long_its_start_takes(
    tmp_path: Path,
) -> None:
    watcher = Watcher()

    def break_it() -> None:
        wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "the member")
        os.kill(pid_in(tmp_path / "bad"), 9)
        (tmp_path / "bad").unlink()
        wait_for(lambda: watcher.child("bad").restarts >= 3, "three restarts")

    healthy_at_once = Backoff(first=0.02, most=0.1, healthy_after=0)
    await while_running(MemberGroup([member(tmp_path, "bad", GOOD_ONCE)], watcher, healthy_at_once), break_it)
    notes = [child.note for _, (child,) in watcher.said]
    waits = list(dict.fromkeys(note.rpartition(" in ")[2] for note in notes if " in " in note))
    assert waits == ["0.02 s", "0.04 s", "0.08 s"]


async def test_a_member_that_worked_for_a_while_is_started_again_at_once_however_often_it_is_killed(
    tmp_path: Path,
) -> None:
    watcher = Watcher()

    def is_up(restarts: int) -> bool:
        return watcher.phase is GroupPhase.RUNNING and watcher.child("a").restarts == restarts

    def kill_it() -> None:
        for restarts in range(3):
            wait_for(partial(is_up, restarts), "a restart")
            pid = pid_in(tmp_path / "a")
            (tmp_path / "a").unlink()
            os.kill(pid, 9)

    healthy_at_once = Backoff(first=0.02, most=60, healthy_after=0)
    await while_running(MemberGroup([member(tmp_path, "a", GOOD)], watcher, healthy_at_once), kill_it)
    notes = {child.note for _, (child,) in watcher.said if child.note}
    assert notes == {"ended (killed by SIGKILL); starting it again in 0.02 s"}


async def test_a_member_that_does_not_find_a_restarted_one_again_in_time_is_restarted(tmp_path: Path) -> None:
    watcher, asked = Watcher(), set[int]()

    def kill_it() -> None:
        wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "all members")
        pid, left_alone = pid_in(tmp_path / "a"), pid_in(tmp_path / "c")
        for name in ("a", "b"):
            (tmp_path / name).unlink()  # each is ready once it is there again
        os.kill(pid, 9)
        wait_for(lambda: watcher.child("b").restarts == 1 and watcher.phase is GroupPhase.RUNNING, "both restarts")
        assert asked == {left_alone}

    async def never(_: int) -> None:
        await asyncio.Event().wait()

    async def at_once(pid: int) -> None:
        asked.add(pid)

    lost = replace(member(tmp_path, "b", GOOD), works_with="a", rejoins=never)
    back = replace(member(tmp_path, "c", GOOD), works_with="a", rejoins=at_once)
    await while_running(MemberGroup([member(tmp_path, "a", GOOD), lost, back], watcher, QUICK), kill_it)
    assert [watcher.child(name).restarts for name in ("a", "b", "c")] == [1, 1, 0]
    assert (tmp_path / "order").read_text().startswith("+a +b +c +a +b ")


async def test_a_member_that_ends_before_it_is_ready_fails_the_start_with_its_last_words(tmp_path: Path) -> None:
    watcher = Watcher()
    group = MemberGroup([member(tmp_path, "a", GOOD), member(tmp_path, "bad", BROKEN)], watcher)
    with pytest.raises(
        MemberFailedError, match=r"the bad ended \(status 7\) before it was ready\n  \| out of cheese"
    ) as failed:
        await group.run(asyncio.Event())
    assert str(tmp_path / "logs" / "bad.log") in failed.value.hint
    assert is_gone(pid_in(tmp_path / "a"))


async def test_the_last_words_of_one_that_ends_while_it_is_still_being_started_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = asyncio.create_subprocess_exec

    async def late(*argv: str, **given: Any) -> asyncio.subprocess.Process:
        process = await launch(*argv, **given)
        await process.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", late)
    bad = await MemberProcess.launch(member(tmp_path, "bad", BROKEN))
    with pytest.raises(MemberFailedError, match="out of cheese"):
        await bad.ready()


async def test_a_member_that_is_never_ready_fails_the_start_and_is_killed(tmp_path: Path) -> None:
    watcher = Watcher()
    with pytest.raises(MemberFailedError, match=r"was not ready, and has done nothing for 2 s\n  \| thinking"):
        await MemberGroup([member(tmp_path, "a", SILENT, patience=2, grace=0.2)], watcher).run(asyncio.Event())
    pids = {child.pid for _, (child,) in watcher.said if child.pid}
    assert len(pids) == 1
    assert all(is_gone(pid) for pid in pids)


@pytest.mark.parametrize("how", ["os.getpid()", "print('thinking', flush=True)"], ids=["processor time", "a log"])
async def test_a_start_is_waited_for_as_long_as_it_makes_progress(tmp_path: Path, how: str) -> None:
    """The member starts for three times its patience."""
    slow = f"until = time.monotonic() + 3 * {PATIENCE}\nwhile time.monotonic() < until:\n    {how}\n"
    slow += "    time.sleep(0.05)\n" if "print" in how else ""
    watcher = Watcher()
    group = MemberGroup([member(tmp_path, "slow", slow + GOOD, patience=PATIENCE)], watcher)
    await while_running(group, lambda: wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "the member"))
    assert watcher.child("slow").restarts == 0


def beating(folder: Path, name: str, *, work: float = 0.0) -> MemberProgram:
    """Build a member whose file is touched at each beat."""

    async def beat() -> object:
        return ready.beat_of(folder / name)

    made = member(folder, name, BEATS, patience=PATIENCE)
    return replace(made, beat=beat, env={**made.env, "WORK": str(work)})


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGUSR1], ids=["stopped", "its lock is kept"])
async def test_a_frozen_member_is_ended_and_started_again_and_that_is_said(
    tmp_path: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(signs_of_life, "ENOUGH_SECONDS", 0.5)
    watcher = Watcher()

    def freeze_it() -> None:
        wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "all members")
        frozen = pid_in(tmp_path / "a")
        os.kill(frozen, how)
        wait_for(lambda: watcher.child("a").restarts == 1 and watcher.phase is GroupPhase.RUNNING, "a restart")
        assert is_gone(frozen)

    with caplog.at_level(logging.WARNING):
        await while_running(MemberGroup([beating(tmp_path, "a"), beating(tmp_path, "b")], watcher, QUICK), freeze_it)
    assert "a gave no sign of life for 1 s; starting it again in 0.02 s (restart 1)" in caplog.text
    assert watcher.child("a").frozen_at is not None
    assert (watcher.child("b").restarts, watcher.child("b").frozen_at) == (0, None)


async def test_looks_at_a_member_whose_server_does_not_answer_follow_one_another_at_once(tmp_path: Path) -> None:
    """A look may take as long as the pause between two: a frozen server is asked until a timeout."""
    began, ended = list[float](), list[float]()

    async def unanswered() -> object:
        began.append(time.monotonic())
        await asyncio.sleep(PATIENCE / signs_of_life.LOOKS)
        ended.append(time.monotonic())
        return None

    watcher = Watcher()
    frozen = replace(member(tmp_path, "a", GOOD, patience=PATIENCE), beat=unanswered)

    def is_restarted() -> bool:
        return bool(watcher.said) and watcher.child("a").restarts > 0

    await while_running(MemberGroup([frozen], watcher, QUICK), lambda: wait_for(is_restarted, "a restart"))
    pauses = [then - before for before, then in zip(ended, began[1:], strict=False)]
    assert min(pauses) < PATIENCE / signs_of_life.LOOKS / 2


async def test_a_member_with_three_percent_of_a_processor_beats_late_and_is_left_alone(tmp_path: Path) -> None:
    watcher = Watcher()
    with starved(3) as starve:

        def starve_it() -> None:
            wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "the member")
            starve(pid_in(tmp_path / "a"))
            for _ in range(4):
                wait_for(partial(has_beaten_since, tmp_path / "a", ready.beat_of(tmp_path / "a")), "a beat")

        await while_running(MemberGroup([beating(tmp_path, "a", work=0.06)], watcher, QUICK), starve_it)
    assert watcher.child("a").restarts == 0


def has_beaten_since(path: Path, last: int | None) -> bool:
    return ready.beat_of(path) != last


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    absent = replace(member(tmp_path, "a", GOOD), argv=("/no/such/program",))
    with pytest.raises(MemberFailedError, match="cannot run /no/such/program: No such file"):
        await MemberGroup([absent], Watcher()).run(asyncio.Event())


async def test_a_stop_during_the_start_leaves_nothing(tmp_path: Path) -> None:
    watcher = Watcher()

    def wait() -> None:
        wait_for(lambda: bool(watcher.said) and watcher.child("slow").pid is not None, "a process")

    await while_running(MemberGroup([member(tmp_path, "slow", SILENT, grace=0.2)], watcher), wait)
    assert all(is_gone(child.pid) for _, (child,) in watcher.said if child.pid)


async def test_a_member_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    watcher = Watcher()
    group = MemberGroup([member(tmp_path, "deaf", DEAF, grace=0.2)], watcher)
    await while_running(group, lambda: wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "the member"))
    assert is_gone(pid_in(tmp_path / "deaf"))


async def test_what_a_member_leaves_behind_in_its_session_goes_with_it(tmp_path: Path) -> None:
    watcher = Watcher()

    def kill_it() -> None:
        wait_for(lambda: watcher.phase is GroupPhase.RUNNING, "the member")
        orphan = pid_in(tmp_path / "grandchild")
        os.kill(pid_in(tmp_path / "a"), 9)
        wait_for(lambda: is_gone(orphan), "the end of the orphan")

    await while_running(MemberGroup([member(tmp_path, "a", PARENT)], watcher, Backoff(first=60, most=60)), kill_it)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties lives together")
def test_a_tied_program_dies_with_the_one_that_started_it(tmp_path: Path) -> None:
    starter = "subprocess.Popen([sys.executable, sys.argv[1], str(os.getpid()), *sys.argv[2:]])\ntime.sleep(600)"
    tied_words = (sys.executable, "-c", SAY + DEAF, str(tmp_path / "pid"))
    with subprocess.Popen([sys.executable, "-c", SAY + starter, die_with_parent.__file__, *tied_words]) as parent:
        pid = pid_in(tmp_path / "pid")
        assert not is_gone(pid)
        parent.kill()
    wait_for(lambda: is_gone(pid), "the end of the tied program")


def test_backoff_doubles_up_to_its_most_and_never_overflows() -> None:
    backoff = Backoff(first=0.5, most=30)
    assert [backoff.delay(n) for n in (1, 2, 3, 7, 8, 100_000)] == [0.5, 1, 2, 30, 30, 30]
