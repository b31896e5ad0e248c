"""What it costs to run a command under a supervisor that outlives us, as a ratio to a plain subprocess.

Run with `python tests/benchmarks/bench_runs.py`. Both sides start the same command and collect its output from a file.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from activities.runs.supervised_run import RunRequest, run

ROUNDS = 30
TOGETHER = 8
ENV = {"PATH": "/usr/bin:/bin"}
COMMANDS = {"true": ("true",), "python -c pass": (sys.executable, "-I", "-S", "-c", "pass")}


async def plain(argv: tuple[str, ...], folder: Path, _: int) -> None:
    with (folder / "plain.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENV)
        await process.wait()


async def supervised(argv: tuple[str, ...], folder: Path, number: int) -> None:
    end = await run(RunRequest(folder / f"job-{time.monotonic_ns()}.{number}", argv, folder, ENV))
    assert end.exit_code == 0


async def seconds(way: object, argv: tuple[str, ...], folder: Path, at_once: int) -> float:
    begun = time.perf_counter()
    await asyncio.gather(*(way(argv, folder, number) for number in range(at_once)))  # type: ignore[operator]
    return time.perf_counter() - begun


async def measure(folder: Path) -> None:
    """Interleaved, so that a slow minute of the machine is everybody's."""
    for name, argv in COMMANDS.items():
        for at_once in (1, TOGETHER):
            times: dict[object, list[float]] = {plain: [], supervised: []}
            for _ in range(ROUNDS // at_once + 4):
                for way, spent in times.items():
                    spent.append(await seconds(way, argv, folder, at_once))
            floor, cost = (statistics.median(times[way]) for way in (plain, supervised))
            print(f"{name:16} {at_once} at once: {cost / floor:5.1f} x a plain subprocess ({floor * 1000:.0f} ms)")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
