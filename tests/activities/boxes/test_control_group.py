"""Limits of all agents of a service together, where the machine has control groups (ruling N2)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.boxes import control_group
from activities.boxes.control_group import CPU, MEMORY, PROCESSES, Group, bases, job_limits, limits, make
from activities.host.helper_process import TooMuchError, apart
from activities.runs import spawn
from activities.runs.supervised_run import RunRequest, run
from activities.runs.supervisor import EndKind
from tests.activities.boxes.groups import kept_within
from tests.activities.boxes.world import World
from tests.activities.runs.processes import without_fork_server

pytestmark = pytest.mark.ruling("N2")

MEGABYTE = 1 << 20
TAKES = f"x = bytearray(300 * {MEGABYTE}); print(len(x))"
FORKS = """
import os, signal
children, refused = [], False
while not refused and len(children) < 200:
    try: pid = os.fork()
    except BlockingIOError: refused = True
    else:
        if pid == 0: signal.pause()
        children.append(pid)
print(refused, len(children) < 60)
"""


@pytest.fixture
def group() -> Iterator[Group]:
    with kept_within({MEMORY: 200 * MEGABYTE, PROCESSES: 60}) as there:
        yield there


async def test_an_agent_that_takes_more_memory_is_ended_and_nobody_else(world: World, group: Group) -> None:
    end = await world.play(world.box(), TAKES)
    assert (end.kind, end.signal, end.stdout.read_text()) == (EndKind.EXITED, 9, "")
    assert end.ran_out.startswith("the kernel killed it for lack of memory: all agents together may take 200 MiB, see ")
    assert (await world.play(world.box(), "print('up')")).exit_code == 0


async def test_an_agent_cannot_exceed_the_limit_of_processes(world: World, group: Group) -> None:
    end = await world.play(None, FORKS)
    assert end.stdout.read_text() == "True True\n", end.stderr.read_text()
    assert end.survivors == 0


async def test_the_memory_limit_holds_without_a_fork_server(
    world: World, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fork_server(monkeypatch)
    end = await world.play(None, TAKES)
    assert end.signal == 9


async def test_a_removed_group_is_created_again(world: World, group: Group) -> None:
    assert group.remove()
    assert (await world.play(None, TAKES)).signal == 9


async def test_a_fork_server_outside_its_group_is_logged_once(
    world: World, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = dict.fromkeys(group.folders, world.tmp / "gone")
    spawn.keep_within(Group(nowhere, group.limits))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Group, "ensure", lambda _: None)
        for _ in range(2):
            assert (await world.play(None, "print('up')")).exit_code == 0
    assert [each.getMessage().partition(" could ")[2] for each in caplog.records if "control group" in each.msg] == [
        "not enter its control group: its agents have no limits"
    ], "once, not for each run"


@pytest.mark.ruling("N3")
def test_helper_processes_are_in_the_group(group: Group) -> None:
    assert group.holds(apart(60, os.getpid))
    with pytest.raises(TooMuchError):
        apart(60, bytearray, 300 * MEGABYTE)


async def test_a_fork_server_in_its_group_is_not_logged(
    world: World, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await world.play(None, "print('up')")).exit_code == 0
    assert group.holds(spawn.current().pid)
    assert "control group" not in caplog.text


def test_a_group_whose_limit_cannot_be_set_is_removed(group: Group) -> None:
    name = f"{next(iter(group.folders.values())).name}-odd"
    assert make(name, dict.fromkeys(group.limits, -2)) is None
    assert not any((each.parent / name).exists() for each in group.folders.values())


async def test_agents_do_not_get_the_variable_of_the_group(world: World, group: Group) -> None:
    end = await run(
        RunRequest(world.tmp / "user/.service/runs/job-1.1", ("env",), world.work, {"PATH": "/usr/bin:/bin"})
    )
    assert control_group.VARIABLE not in end.stdout.read_text()


def test_the_limits_are_a_share_of_the_machine() -> None:
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert limits(50) == {MEMORY: whole * 50 // 100, PROCESSES: 8192, CPU: 50}
    assert limits(0) == {PROCESSES: 8192, CPU: 50}, "none"
    assert job_limits(25, 4096) == {MEMORY: whole * 25 // 100, PROCESSES: 4096}
    assert job_limits(0, 64) == {PROCESSES: 64}, "none"


class TestWhereOneCanBeMade:
    """Reads sample contents of /proc."""

    def test_cgroup_v1_in_the_own_group_of_each_hierarchy(self, tmp_path: Path) -> None:
        for path in ("memory/here/own", "pids", "cpu"):
            (tmp_path / path).mkdir(parents=True)
        mounts = "".join(
            f"3{number} 31 0:29 / {tmp_path}/{name} rw,relatime - cgroup cgroup rw,{name}\n"
            for number, name in enumerate(("memory", "pids", "cpu"))
        )
        own = "8:pids:/\n4:memory:/here/own\n2:cpu:/\n0::/\n"
        assert bases(mounts, own) == {
            MEMORY: tmp_path / "memory/here/own",
            PROCESSES: tmp_path / "pids",
            CPU: tmp_path / "cpu",
        }

    def test_cgroup_v1_with_a_part_of_the_hierarchy_mounted(self, tmp_path: Path) -> None:
        (tmp_path / "own").mkdir()
        mounts = f"30 31 0:29 /docker/1 {tmp_path} rw - cgroup cgroup rw,memory\n"
        assert bases(mounts, "4:memory:/docker/1/own\n") == {MEMORY: tmp_path / "own"}
        assert bases(mounts, "4:memory:/elsewhere\n") == {MEMORY: tmp_path}

    def second(self, top: Path, *folders: str, hands_down: str = "memory pids cpu") -> str:
        """Make a cgroup v2 tree, and return the line of its mount."""
        for folder in (top, *(top / each for each in folders)):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.procs").touch()
            (folder / "cgroup.subtree_control").write_text(hands_down)
        return f"30 31 0:29 / {top} rw - cgroup2 cgroup2 rw,nsdelegate\n"

    def test_cgroup_v2_beside_the_own_group(self, tmp_path: Path) -> None:
        mounts = self.second(tmp_path, "app.slice", "app.slice/service")
        around = tmp_path / "app.slice"
        assert bases(mounts, "0::/app.slice/service\n") == {MEMORY: around, PROCESSES: around, CPU: around}

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_no_group_without_write_permission(self, tmp_path: Path) -> None:
        mounts = self.second(tmp_path, "user.slice", "user.slice/session")
        for folder in (tmp_path, tmp_path / "user.slice"):
            (folder / "cgroup.procs").chmod(0o444)
        assert bases(mounts, "0::/user.slice/session\n") == {}

    def test_no_group_on_a_machine_without_control_groups(self) -> None:
        assert bases("23 1 0:20 / / rw - ext4 /dev/vda rw\n", "") == {}
