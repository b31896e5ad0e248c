"""What it costs to start: `service` commands as ratios to `python -c pass`, and 200 exits two at a time.

Run with `python tests/benchmarks/bench_cli.py`; it starts and stops a daemon of its own.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PYTHON = sys.executable
SERVICE = str(Path(sys.executable).with_name("service"))
COMMANDS = {
    "python -c pass": (PYTHON, "-c", "pass"),
    "service --help": (SERVICE, "--help"),
    "service repo list": (SERVICE, "repo", "list"),
    "service agent list": (SERVICE, "agent", "list"),
    "service job list": (SERVICE, "job", "list"),
    "service config show": (SERVICE, "config", "show"),
    "service daemon status": (SERVICE, "daemon", "status"),
}
ROUNDS = 15
EXITS = 200


def seconds(words: tuple[str, ...], environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(words, env=environment, capture_output=True, check=False)
    return time.perf_counter() - begun


def measure(environment: dict[str, str]) -> None:
    """Interleaved rounds, so that a slow minute of the machine is everybody's."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, words in COMMANDS.items():
            times[name].append(seconds(words, environment))
    floor = statistics.median(times["python -c pass"])
    for name, spent in times.items():
        print(f"{name:24} {statistics.median(spent) * 1000:6.0f} ms  {statistics.median(spent) / floor:5.1f} x")


def exits(environment: dict[str, str]) -> None:
    """A command that connects to Temporal must leave without a crash, every time."""
    words = (SERVICE, "agent", "ask", "scout", "hello", "--repo", "bench/shop")

    def code(_: int) -> int:
        return subprocess.run(words, env=environment, capture_output=True, check=False).returncode

    with ThreadPoolExecutor(2) as two:
        codes = list(two.map(code, range(EXITS)))
    print(f"{EXITS} exits of a Temporal client, two at a time: {sum(c != 0 for c in codes)} other than 0 {set(codes)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SERVICE_HOME": f"{folder}/home"}

        def run(*words: str) -> None:
            subprocess.run(words, env=environment, check=True, capture_output=True)

        run("git", "init", "-q", f"{folder}/shop")
        run(SERVICE, "repo", "add", "bench/shop", f"{folder}/shop")
        run(SERVICE, "agent", "add", "scout", "--runtime", "shell", "--command", "true", "--repo", "bench/shop")
        measure(environment)
        run(SERVICE, "daemon", "start")
        try:
            exits(environment)
        finally:
            run(SERVICE, "daemon", "stop")


if __name__ == "__main__":
    main()
