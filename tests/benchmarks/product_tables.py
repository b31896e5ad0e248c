"""Measurements of `bench_product`, side by side, and the tables it prints."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tests.benchmarks.product_sides import REST, Burst, Side, at_rest, burst, in_turns

_WIDE = 43


def trees(sides: Sequence[Side], rounds: Mapping[int, int]) -> None:
    """Print trees of several sizes, one at a time."""
    first = sides[0].name
    print("a tree: a coordinator, its legs, its continuation; milliseconds from its start until its task is done")
    print(f"{'legs':>4} {'side':10} {'min':>7} {'median':>7}   {first} / it: {'of minima':>9} {'in turns':>8}")
    for legs, count in rounds.items():
        results = in_turns(sides, count, partial(_tree, legs))
        for name, times in results.items():
            ratios = "" if name == first else _ratios(results[first], times)
            print(f"{legs:4} {name:10.10} {min(times):7.0f} {statistics.median(times):7.0f}{ratios}", flush=True)
    print()


def _tree(legs: int, side: Side) -> float:
    time.sleep(REST)
    return side.talk("tree", legs=legs)["seconds"] * 1000


def _ratios(one: Sequence[float], other: Sequence[float]) -> str:
    turns = statistics.median(a / b for a, b in zip(one, other, strict=True))
    return f"{min(one) / min(other):23.2f} {turns:8.2f}"


def stations(sides: Sequence[Side], rounds: int) -> None:
    """Print the stations of one ask, without other load."""

    def one(side: Side) -> dict[str, float]:
        time.sleep(REST)
        return side.talk("stations")

    results = in_turns(sides, rounds, one)
    print(f"the stations of one ask: milliseconds since the post, and since the station before; medians of {rounds}")
    print("(a file's time is up to 4 ms early, so a step may look shorter than nothing)")
    print(f"{'':26}" + "".join(f"{side.name:>9.9} {'step':>6}" for side in sides))
    before = {side.name: [0.0] * rounds for side in sides}
    for station in results[sides[0].name][0]:
        figures = ""
        for name, asks in results.items():
            at = [ask[station] * 1000 for ask in asks]
            step = statistics.median(b - a for a, b in zip(before[name], at, strict=True))
            beside = station == "start returned"  # concurrent with the others
            figures += f"{statistics.median(at):9.1f} {'' if beside else f'{step:.1f}':>6}"
            before[name] = at
        print(f"{station:26}{figures}", flush=True)
    print()


def bursts(sides: Sequence[Side], count: int, rounds: int) -> None:
    """Print many trees of one job, all at once."""
    idle, results = at_rest(sides), in_turns(sides, rounds, partial(burst, count))

    def medians(figure: Callable[[Burst], float | None]) -> list[float | None]:
        return [_median([figure(sample) for sample in results[side.name]]) for side in sides]

    print(f"{count} trees of one job at once; {rounds} rounds, the best of them for time, medians for the rest")
    ratios = "".join(f"{f'{sides[0].name} / {side.name}':>16.16}" for side in sides[1:])
    print(f"{'':{_WIDE}}" + "".join(f"{side.name:>10.10}" for side in sides) + ratios)
    _row("jobs a second", [max(count / sample.seconds for sample in results[side.name]) for side in sides])
    _row("started a second", [max(count / sample.started for sample in results[side.name]) for side in sides])
    for process in sides[0].spent():
        _row(f"processor ms a job: {process}", medians(partial(_processor, process)))
    _row("processor ms a job: all the machine", medians(lambda sample: sample.machine))
    for database in sides[0].databases:
        _row(f"{database}, bytes a job", medians(partial(_bytes, database)))
    for process in sides[0].spent():
        _row(f"at rest, ms a second: {process}", [idle[side.name].get(process) for side in sides])
    print()


def _processor(process: str, of: Burst) -> float | None:
    return of.processor.get(process)


def _bytes(database: str, of: Burst) -> float | None:
    return of.bytes.get(database)


def _row(name: str, values: Sequence[float | None]) -> None:
    shown = "".join(f"{'-' if value is None else f'{value:,.1f}':>10}" for value in values)
    first = values[0] or 0.0
    ratios = "".join(f"{f'{first / other:.2f}' if other else '':>16}" for other in values[1:])
    print(f"{name:{_WIDE}}{shown}{ratios}", flush=True)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
