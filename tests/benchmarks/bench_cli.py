"""Cost of commands: `service` commands compared with `python -c pass`, and 200 exits two at a time.

Each command is measured in the warm process of a daemon, and in a process of its own, as without a daemon; in turns.
Run with `python -m tests.benchmarks.bench_cli`; it starts its own daemon.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from activities.settings.home import Home
from bridge.operations.jobs import rounds
from bridge.operations.service import Service
from tests.cli.warm.warming import warmed
from tests.waiting import wait_for

SERVICE = (str(Path(sys.executable).with_name("service")),)
ALONE = (sys.executable, "-P", "-m", "cli.main")
FLOOR = (sys.executable, "-c", "pass")
READS = ("--help", "repo list", "agent list", "job list", "config show", "daemon status", "attention")
ASKS = ("agent ask scout hello --repo bench/shop", "resume JOB answer red")
AT_MOST = {**dict.fromkeys(READS, 12.0), **dict.fromkeys(ASKS, 20.0)}
"""Maximum time of a command with a daemon, as a multiple of `python -c pass`."""
ROUNDS = int(os.environ.get("ROUNDS", "11"))
EXITS = 200
ASKING = """
if [ "$SERVICE_CONTINUATION" = answered ]; then
  echo '{"service_result": {"decision": "approved", "summary": "as you said"}}'
else
  echo '{"service_result": {"decision": "approved", "summary": "a question",
    "human_questions": [{"id": "color", "prompt": "which?"}]}}'
fi
"""


class Bench:
    """A service of its own, and the times of commands there."""

    def __init__(self, folder: Path) -> None:
        self.environment = {**os.environ, "SERVICE_HOME": f"{folder}/home"}
        self.home = Home(folder / "home")
        self.times: dict[tuple[str, bool], list[float]] = {}
        self._open = self._waiting_jobs()

    def run(self, *words: str) -> str:
        return subprocess.run(words, env=self.environment, check=True, capture_output=True, text=True).stdout

    def seconds(self, words: tuple[str, ...]) -> float:
        begun = time.perf_counter()
        done = subprocess.run(words, env=self.environment, capture_output=True, check=False)
        spent = time.perf_counter() - begun
        assert done.returncode == 0, (words, done.stderr)
        return spent

    def measure(self) -> None:
        """Measure in turns, so that a slow minute of the machine affects all commands."""
        for _ in range(ROUNDS):
            self.times.setdefault(("", True), []).append(self.seconds(FLOOR))
            for name in (*READS, *ASKS):
                for warm in (True, False):
                    words = [next(self._open) if word == "JOB" else word for word in name.split()]
                    spent = self.seconds((*(SERVICE if warm else ALONE), *words))
                    self.times.setdefault((name, warm), []).append(spent)

    def _waiting_jobs(self) -> Iterator[str]:
        """Yield jobs that wait for an answer."""
        service = Service(self.home)
        for number in count():
            job = self.run(*SERVICE, "agent", "ask", "asker", f"{number}", "--repo", "bench/shop").split()[0]
            wait_for(self._waits(service, job), f"{job} to ask")
            yield job

    @staticmethod
    def _waits(service: Service, job: str) -> Callable[[], object]:
        return lambda: rounds.open_of(service, job)

    def say(self) -> bool:
        """Print the table; return whether all commands are within their limits."""
        median = {name: statistics.median(spent) for name, spent in self.times.items()}
        floor = median["", True]
        print(f"{'python -c pass':44} {floor * 1000:6.0f} ms")
        print(f"{'service ...':44} {'with a daemon':>18} {'at most':>8} {'without':>18}")
        for name, bound in AT_MOST.items():
            cells = [
                f"{median[name, warm] * 1000:6.0f} ms {median[name, warm] / floor:6.1f} x" for warm in (True, False)
            ]
            print(f"{name:44} {cells[0]:>18} {bound:6.0f} x {cells[1]:>18}")
        return all(median[name, True] / floor <= bound for name, bound in AT_MOST.items())

    def exits(self) -> None:
        """Count exits with a code other than 0 of a command that connects to Temporal, warm and alone."""
        for how, entry in (("handed over", SERVICE), ("alone", ALONE)):
            words = (*entry, "agent", "ask", "scout", "hello", "--repo", "bench/shop")

            def code(_: int, words: tuple[str, ...] = words) -> int:
                return subprocess.run(words, env=self.environment, capture_output=True, check=False).returncode

            with ThreadPoolExecutor(2) as two:
                codes = list(two.map(code, range(EXITS)))
            print(f"{EXITS} exits of a Temporal client, {how}, two at a time: {sum(map(bool, codes))} other than 0")

    def memory(self) -> None:
        """Print the memory of the warm process."""
        status = subprocess.run(
            [*SERVICE, "daemon", "status"], env=self.environment, capture_output=True, text=True, check=True
        )
        pid = next(line.split()[-1] for line in status.stdout.splitlines() if line.startswith("commands "))
        kept = [line for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:")]
        print(f"the warm process keeps {int(kept[0].split()[1]) // 1024} MiB")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        Path(folder, "asker.sh").write_text(ASKING)
        bench.run("git", "init", "-q", f"{folder}/shop")
        commit = ("-c", "user.name=b", "-c", "user.email=b@example.invalid", "commit", "-q", "--allow-empty", "-m", "1")
        bench.run("git", "-C", f"{folder}/shop", *commit)
        bench.run(*SERVICE, "repo", "add", "bench/shop", f"{folder}/shop")
        for name, command in (("scout", "true"), ("asker", f"sh {folder}/asker.sh")):
            agent = ("agent", "add", name, "--runtime", "shell", "--command", command, "--repo", "bench/shop")
            bench.run(*SERVICE, *agent)
        bench.run(*SERVICE, "daemon", "start")
        try:
            warmed(bench.home.commands_socket)
            bench.measure()
            within = bench.say()
            bench.memory()
            if "--exits" in sys.argv:
                bench.exits()
        finally:
            bench.run(*SERVICE, "daemon", "stop")
    if not within:
        sys.exit("a command takes longer than it may")


if __name__ == "__main__":
    main()
