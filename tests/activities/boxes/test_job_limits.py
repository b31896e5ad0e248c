"""Limits of each job, where the machine has control groups (ruling N2)."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.boxes.control_group import CPU, MEMORY, OWN, PROCESSES, Group, JobGroup, make
from activities.runs import spawn
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from tests.activities.boxes.groups import kept_within
from tests.activities.boxes.world import World, begun
from tests.activities.runs.processes import supervisor_of, without_fork_server
from tests.waiting import until, wait_for

pytestmark = pytest.mark.ruling("N2")

MEGABYTE = 1 << 20
HOST, JOB = {MEMORY: 400 * MEGABYTE, PROCESSES: 120, CPU: 50}, {MEMORY: 180 * MEGABYTE, PROCESSES: 50}
ITS_OWN = "it used all of its memory: 180 MiB, see [worker].job_memory"
FOR_ALL = "the kernel killed it for lack of memory: all agents together may take 400 MiB, see [worker].agents_memory"
MORE_THAN_50 = "it was refused more processes: it may have 50 with their threads, see [worker].job_pids"

BYSTANDER = f"""
import os, time
kept = bytearray(120 * {MEGABYTE})
print("begun", flush=True)
while not os.path.exists("go"): time.sleep(0.05)
for _ in range(8):
    if (pid := os.fork()) == 0: os._exit(0)
    os.waitpid(pid, 0)
print("well", flush=True)
"""
"""One large process, which the kernel would kill first; later it starts some."""

EATER = f"""
import os, signal, time
print("begun", flush=True)
while True:
    if os.fork() == 0:
        kept = bytearray(20 * {MEGABYTE})
        signal.pause()
    time.sleep(0.05)
"""
"""Many small processes; the first of them takes no memory."""

BOMB = """
import os, signal
refused = False
while not os.path.exists("enough"):
    try: pid = os.fork()
    except OSError:
        if not refused: print("refused", flush=True)
        refused = True
    else:
        if pid == 0: signal.pause()
raise SystemExit(3)
"""
SHOWS = """
import os, time
print(open("/proc/self/cgroup").read(), flush=True)
while not os.path.exists("go"): time.sleep(0.05)
"""
WIDENS = """
import glob, os
done = []
for folder in os.environ["GROUPS"].split(":"):
    for path in (f"{folder}/cgroup.procs", *glob.glob(f"{folder}/*/*")):
        try: open(path, "w").close()
        except OSError: continue
        done.append(path)
print(done)
"""


@pytest.fixture
def group() -> Iterator[Group]:
    with kept_within(HOST, JOB) as there:
        yield there


async def ends_well(world: World, bystander: "asyncio.Task[RunEnd]") -> None:
    (world.work / "go").touch()
    end = await bystander
    output = end.stdout.read_text()
    assert (end.exit_code, end.ran_out, output) == (0, "", "begun\nwell\n"), end.stderr.read_text()


def jobs_of(group: Group) -> set[str]:
    """Return the names of the jobs' control groups."""
    return {each.name for folder in group.folders.values() for each in folder.glob("*/")} - {OWN}


async def test_a_job_that_exceeds_its_memory_ends_alone_and_says_why(world: World, group: Group) -> None:
    beside = await begun(world.request(world.box(), BYSTANDER))
    eater = await world.play(world.box(), EATER)
    await ends_well(world, beside)
    assert (eater.kind, eater.signal, eater.survivors) == (EndKind.EXITED, 9, 0)
    assert eater.ran_out == ITS_OWN


async def test_a_fork_bomb_leaves_others_their_processes_and_says_why(world: World, group: Group) -> None:
    beside = await begun(world.request(world.box(), BYSTANDER))
    bomb = await begun(world.request(world.box(), BOMB))
    await ends_well(world, beside)
    (world.work / "enough").touch()
    end = await bomb
    assert (end.exit_code, end.survivors) == (3, 0)
    assert end.ran_out == MORE_THAN_50


async def test_without_a_box_and_a_fork_server_it_is_the_same(
    world: World, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fork_server(monkeypatch)
    beside = await begun(world.request(None, BYSTANDER))
    assert "[worker].job_memory" in (await world.play(None, EATER)).ran_out
    await ends_well(world, beside)
    await until(lambda: not jobs_of(group))


async def test_a_command_is_in_the_group_of_its_job_by_each_limit(world: World, group: Group) -> None:
    (world.work / "go").touch()
    lines = (await world.play(None, SHOWS)).stdout.read_text().splitlines()
    name = next(iter(group.folders.values())).name
    jobs = [line.rpartition("/")[2] for line in lines if f"/{name}/" in line]
    assert len(jobs) == len(set(group.folders.values())), lines
    assert len(set(jobs)) == 1
    assert OWN not in jobs


async def test_its_supervisor_keeps_its_view_of_groups(world: World, group: Group) -> None:
    """A cgroup namespace of its own could keep the supervisor from leaving the job's group."""
    request = world.request(world.box(), SHOWS)
    run = await begun(request)
    seen, own = (os.readlink(f"/proc/{each}/ns/cgroup") for each in (supervisor_of(request), "self"))
    (world.work / "go").touch()
    assert (await run).exit_code == 0
    assert seen == own


async def test_no_program_widens_what_it_may_take(world: World, group: Group) -> None:
    env = {"PATH": os.environ["PATH"], "GROUPS": ":".join(map(str, group.folders.values()))}
    end = await world.play(world.box(), WIDENS, env=env)
    assert end.stdout.read_text() == "[]\n", end.stderr.read_text()


async def test_the_group_of_a_run_goes_with_it_also_when_its_supervisor_is_killed(world: World, group: Group) -> None:
    assert (await world.play(None, "print('up')")).exit_code == 0
    await until(lambda: not jobs_of(group), lambda: f"{jobs_of(group)}")
    request = world.request(None, "import signal; print('up', flush=True); signal.pause()")
    run = await begun(request)
    os.kill(supervisor_of(request), signal.SIGKILL)
    assert (await run).kind is EndKind.UNKNOWN
    await until(lambda: not jobs_of(group), lambda: f"{jobs_of(group)}")


async def test_what_a_killed_fork_server_left_is_swept_by_the_next_worker(world: World, group: Group) -> None:
    beside = await begun(world.request(None, BYSTANDER))
    os.kill(spawn.current().pid, signal.SIGKILL)
    await ends_well(world, beside)
    assert jobs_of(group)

    def swept() -> bool:  # the supervisor ends a moment after its record
        spawn.keep_within(group)
        return not jobs_of(group)

    wait_for(swept)


def test_a_supervisor_moves_as_the_one_thread_that_it_is(tmp_path: Path) -> None:
    """The kernel moves a process that names no thread only after 5 to 20 ms."""
    (tmp_path / "mine").mkdir()
    for name in ("pids.max", "cgroup.procs", "tasks"):
        (tmp_path / "mine" / name).touch()
    JobGroup(Group({PROCESSES: tmp_path}, HOST, JOB), "mine").enter()
    assert [(tmp_path / "mine" / name).read_text() for name in ("tasks", "cgroup.procs")] == ["0", ""]


def test_an_account_without_the_right_makes_no_group() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another account")
    if (pid := os.fork()) == 0:
        os.setresuid(64_100, 64_100, 64_100)
        os._exit(0 if make("service-test-nobody", HOST, JOB) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


class TestTheSecondVersion:
    """Uses folders like those of cgroup v2, since this machine may have v1 only."""

    @pytest.fixture
    def second(self, tmp_path: Path) -> Group:
        """Make a group with the group of one job, `mine`."""
        around = tmp_path / "agents"
        for folder in (around, around / OWN, around / "mine"):
            folder.mkdir()
            for name in ("cgroup.procs", "memory.max", "memory.oom.group", "pids.max", "cpu.weight"):
                (folder / name).touch()
        (around / "cgroup.subtree_control").write_text("memory pids cpu")
        return Group(dict.fromkeys((MEMORY, PROCESSES, CPU), around), HOST, JOB)

    def job(self, group: Group) -> tuple[JobGroup, Path]:
        return JobGroup(group, "mine"), group.folders[MEMORY] / "mine"

    def test_a_job_is_ended_as_one_by_the_kernel_and_needs_no_watching(self, second: Group) -> None:
        second.ensure()
        assert (second.folders[CPU] / "cpu.weight").read_text() == "50"
        job, folder = self.job(second)
        job.enter()
        names = ("memory.max", "memory.oom.group", "pids.max", "cpu.weight", "cgroup.procs")
        assert [(folder / each).read_text() for each in names] == [str(180 * MEGABYTE), "1", "50", "", "0"]
        assert not job.needs_watch
        job.leave()
        assert (folder.parent / OWN / "cgroup.procs").read_text() == "0"

    @pytest.mark.parametrize(
        ("memory", "processes", "says"),
        [
            ("oom 1\noom_kill 3", "max 0", ITS_OWN),
            ("oom 0\noom_kill 3", "max 0", FOR_ALL),
            ("oom 0\noom_kill 0", "max 7", MORE_THAN_50),
            ("oom 2\noom_kill 0", "max 0", ""),
        ],
    )
    def test_the_reason_of_a_job_s_end_comes_from_its_own_group(
        self, second: Group, memory: str, processes: str, says: str
    ) -> None:
        job, folder = self.job(second)
        (folder / "memory.events").write_text(f"low 0\nhigh 0\nmax 9\n{memory}\noom_group_kill 1\n")
        (folder / "pids.events").write_text(f"{processes}\n")
        assert job.ran_out() == says

    async def test_a_command_is_in_its_group_and_its_supervisor_is_not(self, world: World) -> None:
        """Uses the machine's own hierarchy, which may limit nothing."""
        mounted = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
        top = next((Path(words[1]) for words in mounted if words[2] == "cgroup2"), None)
        if top is None or not os.access(top, os.W_OK):
            pytest.skip("this account may make no control group of the second version here")
        group = Group({MEMORY: top / f"service-test-{os.getpid()}"}, {})
        spawn.close()
        spawn.keep_within(group)
        try:
            request = world.request(None, SHOWS)
            run = await begun(request)
            lines = (request.run_dir / "stdout.log").read_text()
            assert any(f"/{group.folders[MEMORY].name}/{job}\n" in lines for job in jobs_of(group)), lines
            await until(lambda: group.holds(supervisor_of(request)))
            (world.work / "go").touch()
            assert (await run).exit_code == 0
        finally:
            spawn.close()
            spawn.keep_within(None)
            wait_for(group.remove)
