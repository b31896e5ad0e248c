"""The whole product compared with bare Temporal with a process per job: `python -m tests.benchmarks.bench_product`.

    --quick         a short look: fewer rounds
    --against REV   another revision of the product too, in turns with this one

The sides are: an installed service (daemon, server, worker, bridge, store, a git repository, work folders, supervisors,
boxes) whose agents end at once; such a service without boxes; and plain workflows of equal shape on that server, whose
activities run the agents' programs. All sides take turns, so that other load affects all of them. Every ratio compares
two sides: by their minima, and by the median of the rounds' ratios. Prints figures for people; asserts only that trees
end as they should.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import product
from tests.benchmarks.own_processes import end_on_signals
from tests.benchmarks.product_sides import Side
from tests.benchmarks.product_tables import bursts, stations, trees

SIZES = (1, 4, 16, 62)
"""Numbers of legs: 62 with their coordinator and its continuation are the default maximum of a tree's jobs."""


@dataclass(frozen=True)
class Depth:
    """The number of measurements of each kind."""

    rounds: dict[int, int]
    stations: int
    burst: int
    bursts: int


FULL = Depth({1: 15, 4: 9, 16: 7, 62: 5}, stations=20, burst=200, bursts=3)
QUICK = Depth({1: 5, 4: 3, 16: 2, 62: 1}, stations=7, burst=40, bursts=1)


@contextmanager
def sides(folder: Path, against: str | None) -> Iterator[list[Side]]:
    """Start this product with and without boxes, another revision if wanted, and bare Temporal on its server."""
    with ExitStack() as stack:

        def installed(name: str, code: Path, more: str = "") -> product.Installed:
            return stack.enter_context(product.installed(name, code, folder / name, SIZES, more))

        services = [installed("this", product.ROOT), installed("unboxed", product.ROOT, product.WITHOUT_BOX)]
        if against:
            (folder / "code").mkdir()
            services.append(installed(against, stack.enter_context(product.revision(against, folder / "code"))))
        this = services[0]
        talk, pid = stack.enter_context(product.bare(this.address, this.folder))
        ours = [Side(service.name, service.talk, service.pids, service.databases) for service in services]
        pids = {"server": this.pids["server"], "worker": pid}
        yield [*ours, Side("bare", talk, pids, {"temporal.db": this.databases["temporal.db"]})]


def measure(sides: Sequence[Side], depth: Depth) -> None:
    for side in sides:
        side.talk("tree", legs=4)
        side.talk("burst", count=10)
    print("boxes: " + "; ".join(f"{side.name}: {side.box()}" for side in sides), flush=True)
    trees(sides, depth.rounds)
    stations(sides[:-1], depth.stations)
    bursts(sides, depth.burst, depth.bursts)


def main() -> None:
    words = argparse.ArgumentParser(prog="bench_product", description="The whole product beside bare Temporal.")
    words.add_argument("--quick", action="store_true", help="a short look: fewer rounds")
    words.add_argument("--against", metavar="REV", help="another revision of the product, in turns with this one")
    options = words.parse_args()
    end_on_signals()
    with (
        tempfile.TemporaryDirectory(prefix="bench-product-", ignore_cleanup_errors=True) as folder,
        sides(Path(folder).resolve(), options.against) as compared,
    ):
        measure(compared, QUICK if options.quick else FULL)
        load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
        print(f"{os.cpu_count()} processors; load averages at the end: {load}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
