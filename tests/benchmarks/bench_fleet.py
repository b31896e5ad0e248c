"""A second host's share of the work: `python -P -m tests.benchmarks.bench_fleet [TREES] [SECONDS]`.

TREES trees of one job each are started at once, on a repository with a remote; each agent works for SECONDS. First one
host does them, then the same trees go to two. Prints the jobs per second of both, and what each host did.
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

from bridge.operations.jobs import jobs
from bridge.operations.orders import new_jobs
from bridge.operations.orders.new_jobs import NewJob
from tests import postgres
from tests.benchmarks.own_processes import end_on_signals
from tests.fleet import server
from tests.fleet.machines import Fleet, Machine
from tests.waiting import wait_for

AGENT = """\
echo "$HOST" >>"$PLANS"
sleep {seconds}
echo '{{"service_result": {{"decision": "approved", "summary": "done"}}}}'
"""
REPO = "acme/shop"


def main(trees: int = 200, seconds: float = 1.0) -> None:
    end_on_signals()
    with tempfile.TemporaryDirectory() as name, postgres.running(connections=100) as database:
        folder = Path(name)
        database.create("fleet")
        with server.running(folder / "temporal.db") as temporal:
            fleet = Fleet(folder, temporal.address, database, "fleet", "fleet")
            try:
                one, two = _machines(fleet, seconds)
                one("daemon", "start")
                alone = _time_trees(one, trees)
                two("daemon", "start")
                _time_trees(one, 8)  # the second host gets its mirror
                both = _time_trees(one, trees)
            finally:
                fleet.close()
    for hosts, (took, share) in {"one host": alone, "two hosts": both}.items():
        shares = ", ".join(f"{host} {number}" for host, number in sorted(share.items()))
        print(f"{hosts}: {trees} trees in {took:.1f} s, {trees / took:.1f} jobs per second ({shares})")
    print(f"two hosts do {alone[0] / both[0]:.2f} times as many")


def _machines(fleet: Fleet, seconds: float) -> list[Machine]:
    machines = [fleet.host("one"), fleet.host("two")]
    program = fleet.folder / "agent.sh"
    program.write_text(AGENT.format(seconds=seconds))
    for machine in machines:
        machine.extra.update(HOST=machine.name, PLANS=str(fleet.folder / "marks"))
    one = machines[0]
    one("repo", "add", REPO, "--remote", str(fleet.hub()))
    words = ("--runtime", "shell", "--command", f"sh {program}", "--repo", REPO)
    one("agent", "add", "dev", *words, "--capabilities", "ask", "--autonomy", "read-only")
    return machines


def _time_trees(machine: Machine, trees: int) -> tuple[float, Counter[str]]:
    """Start trees at once, and wait for them; return the seconds, and how many each host did."""
    marks = machine.tmp.parent / "marks"
    marks.write_text("")
    begun = time.monotonic()
    for root in asyncio.run(_start(machine, trees)):
        wait_for(partial(_over, machine, root), seconds=3_600.0)
    return time.monotonic() - begun, Counter(marks.read_text().split())


def _over(machine: Machine, root: str) -> bool:
    return jobs.get(machine.seen, root).ended_at is not None


async def _start(machine: Machine, trees: int) -> list[str]:
    asks = [NewJob(agent="dev", action="ask", message=f"the {number}th", repo=REPO) for number in range(trees)]
    return list(await asyncio.gather(*(new_jobs.start(machine.seen, ask) for ask in asks)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *map(float, sys.argv[2:3]))
