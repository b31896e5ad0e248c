"""Cost of running a command under a supervisor that outlives the worker, and of both ways to start that supervisor.

Run with `python tests/benchmarks/bench_runs.py`. First whole runs, as a ratio to a plain subprocess; both sides start
an equal command and collect its output from a file. Then only the starts, by the fork server and directly, in turns:
the time until the claim is settled, and the CPU time of all participants until the command has begun. Then memory.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path

from activities.runs import spawn
from activities.runs.run_folders import made_run_key
from activities.runs.supervised_run import Claim, RunRequest, prepare, run, stop
from tests.waiting import until

ROUNDS = 30
TOGETHER = 8
SUPERVISORS = 64
ENV = {"PATH": "/usr/bin:/bin"}
COMMANDS = {"true": ("true",), "python -c pass": (sys.executable, "-I", "-S", "-c", "pass")}
STAYS = ("sh", "-c", "echo up; exec sleep 600")

Way = Callable[[Path], None]


async def plain(argv: tuple[str, ...], folder: Path, _: int) -> None:
    with (folder / "plain.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENV)
        await process.wait()


async def supervise(argv: tuple[str, ...], folder: Path, number: int) -> None:
    end = await run(RunRequest(folder / f"job-{time.monotonic_ns()}.{number}", argv, folder, ENV))
    assert end.exit_code == 0


async def seconds(way: object, argv: tuple[str, ...], folder: Path, at_once: int) -> float:
    begun = time.perf_counter()
    await asyncio.gather(*(way(argv, folder, number) for number in range(at_once)))  # type: ignore[operator]
    return time.perf_counter() - begun


async def measure(folder: Path) -> None:
    """Measure in turns, so that a slow minute of the machine affects all sides."""
    for name, argv in COMMANDS.items():
        for at_once in (1, TOGETHER):
            times: dict[object, list[float]] = {plain: [], supervise: []}
            for _ in range(ROUNDS // at_once + 4):
                for way, spent in times.items():
                    spent.append(await seconds(way, argv, folder, at_once))
            floor, cost = (statistics.median(times[way]) for way in (plain, supervise))
            print(f"{name:16} {at_once} at once: {cost / floor:5.1f} x a plain subprocess ({floor * 1000:.0f} ms)")


@dataclass(frozen=True)
class Start:
    """Milliseconds until the last of several simultaneous claims was settled, and CPU milliseconds of each."""

    wall: float
    processor: float


def directly(run_dir: Path) -> None:
    with (run_dir / "supervisor.log").open("ab") as log:
        spawn.directly(run_dir, made_run_key(run_dir), log.fileno())


def fork(run_dir: Path) -> None:
    spawn.spawn(run_dir, made_run_key(run_dir))


WAYS: dict[str, Way] = {"direct": directly, "fork server": fork}


def about_to_start(folder: Path) -> Path:
    """Return the folder of a run that is about to be started."""
    run_dir = folder / "runs" / f"job-{time.monotonic_ns()}.1"
    prepare(RunRequest(run_dir, STAYS, folder, ENV, grace_seconds=1.0))
    return run_dir


def processor(pid: int) -> float:
    """Return the CPU milliseconds of a process."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def supervisor_of(run_dir: Path) -> int:
    claim = Claim.read(run_dir)
    assert claim is not None
    assert claim.pid is not None
    return claim.pid


async def measure_start(way: Way, folder: Path, at_once: int) -> Start:
    run_dirs = [about_to_start(folder) for _ in range(at_once)]
    server = spawn.current()
    before, begun = time.process_time() * 1000 + processor(server.pid), time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(way, run_dirs))
    wall = time.perf_counter() - begun
    spent = time.process_time() * 1000 + processor(server.pid) - before
    await until(
        lambda: all(
            (run_dir / "stdout.log").exists() and (run_dir / "stdout.log").stat().st_size for run_dir in run_dirs
        )
    )
    spent += sum(processor(supervisor_of(run_dir)) for run_dir in run_dirs)
    await asyncio.gather(*(stop(run_dir, 1.0) for run_dir in run_dirs))
    return Start(wall * 1000, spent / at_once)


async def starts(folder: Path) -> None:
    for at_once in (1, TOGETHER):
        seen: dict[str, list[Start]] = {name: [] for name in WAYS}
        for _ in range(ROUNDS // at_once + 4):
            for name, way in WAYS.items():
                seen[name].append(await measure_start(way, folder, at_once))
        for name, samples in seen.items():
            wall, work = (least_and_median(numbers) for numbers in zip(*map(astuple, samples), strict=True))
            print(f"{at_once} at once, {name:12} claimed after {wall} ms, {work} ms of processor each")


def least_and_median(numbers: tuple[float, ...]) -> str:
    return f"{min(numbers):5.1f} (median {statistics.median(numbers):5.1f})"


def memory_of(pids: list[int]) -> str:
    """Return the mean memory in MB: shared pages divided among their users, private pages, and all pages."""
    sums = {"Pss": 0, "Private_Dirty": 0, "Rss": 0}
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in sums:
                sums[name] += int(rest.split()[0])
    shares = {name: kilobytes / 1000 / len(pids) for name, kilobytes in sums.items()}
    return f"{shares['Pss']:.1f} MB (its own {shares['Private_Dirty']:.1f}, resident {shares['Rss']:.1f})"


async def memory(folder: Path) -> None:
    for name, way in WAYS.items():
        run_dirs = [about_to_start(folder) for _ in range(SUPERVISORS)]
        with ThreadPoolExecutor(TOGETHER) as pool:
            list(pool.map(way, run_dirs))
        await until(lambda made=run_dirs: all((run_dir / "stdout.log").exists() for run_dir in made))  # type: ignore[misc]
        print(f"{SUPERVISORS} running, {name:12} each {memory_of([supervisor_of(run_dir) for run_dir in run_dirs])}")
        if name != "direct":
            print(f"the fork server itself {memory_of([spawn.current().pid])}")
        await asyncio.gather(*(stop(run_dir, 1.0) for run_dir in run_dirs))


async def everything(folder: Path) -> None:
    await starts(folder)
    await memory(folder)
    await measure(folder)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(everything(Path(folder)))


if __name__ == "__main__":
    main()
