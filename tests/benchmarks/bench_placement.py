"""Cost of choosing a host for an attempt: `python -P -m tests.benchmarks.bench_placement [CHECKOUT]`.

The fleet's hosts are rows of the table. Prints the milliseconds for an attempt and the processor time of this process
in it, on SQLite and PostgreSQL, for several sizes of the fleet; with another checkout, beside that one's.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parents[2]
SIZES = (100, 1_000, 12_500)
ATTEMPTS = 40


def main(other: str | None) -> None:
    from tests import postgres

    with postgres.running() as server:
        for size in SIZES:
            for kind in ("sqlite", "postgres"):
                url = server.create(f"this-{size}") if kind == "postgres" else ""
                before = server.create(f"other-{size}") if kind == "postgres" and other else ""
                line = f"{size:6} hosts, {kind:8}  {_measure_checkout(HERE, url, size)}"
                print(line + (f"   other: {_measure_checkout(Path(other), before, size)}" if other else ""), flush=True)


def _measure_checkout(checkout: Path, url: str, size: int) -> str:
    with TemporaryDirectory() as home:
        Path(home).chmod(0o700)
        env = os.environ | {"PYTHONPATH": str(checkout), "SERVICE_HOME": home}
        command = [sys.executable, "-P", __file__, "measure", url, str(size)]
        done = subprocess.run(command, env=env, check=True, cwd=checkout, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def measure(url: str, size: int) -> None:
    """Fill a fleet's table with the modules of a checkout, place attempts, and print what one takes."""
    from sqlalchemy import text

    from activities.host.context import Context
    from activities.jobs.placing import Placer
    from activities.settings.home import Home
    from activities.settings.model import Settings
    from activities.store.database import open_store
    from activities.store.registry import host_rows, repo_rows
    from activities.store.registry.repo_rows import Remote
    from workflows.temporal.calls import OfferKey
    from workflows.temporal.placing import Unplaced

    home = Home.locate()
    store = open_store(home, url)
    repo_rows.put(store, "acme/shop", "", "a", remote=Remote("https://git.example/shop", "main", "refs/service/"))
    for number in range(size):
        name = f"host-{number}"
        labels = ("runtime:shell", "os:linux", f"host:{name}", *(["gpu"] if number % 10 == 0 else []))
        host_rows.see(store, name, slots=8, started_at=1.0, labels=labels, taken=number % 9)
    with store.begin() as connection:
        connection.execute(text("UPDATE hosts SET seen_at = (SELECT max(seen_at) FROM hosts)"))  # it took its time
        connection.execute(text("ANALYZE"))
    placer = Placer(Context(home, Settings(), store))

    def place(number: int) -> None:
        offer = OfferKey(job_id=f"job-{number}", attempt=1)
        wanted = Unplaced(offer=offer, root="job-0", repo="acme/shop", host="host-1", runtime="shell", prefer=("gpu",))
        assert placer.choose(wanted).host

    for number in range(10):
        place(number)
    wall, processor = time.perf_counter(), time.process_time()
    for number in range(10, 10 + ATTEMPTS):
        place(number)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{wall / ATTEMPTS * 1000:7.1f} ms ({processor / ATTEMPTS * 1000:6.1f} of this process)")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", url, size]:
            measure(url, int(size))
        case [*checkout]:
            main(checkout[0] if checkout else None)
