"""Cases: what a seed stands for, drawn among all stations that a workload reaches and all faults that fit there."""

import ast
import json
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.chaos.faults import all_faults
from tests.chaos.protocol import Fault
from tests.chaos.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]
REACHES = Path(__file__).with_name("reaches.json")
"""How often each workload reaches each station at least; written by `python -m tests.chaos --profile`."""
PACKAGES = ("workflows", "activities", "bridge", "cli")
WRITE = "rows to be written", "rows written"
"""Stations with a detail: the name of the write, which tells what of a tree it is about."""
OPEN = {
    "stopped": "a worker that dies while it stops an agent leaves the agent for a minute more, its work folder for "
    "longer, and a job that says failed in place of cancelled"
}
"""Workloads with a known fault of the product, which no seed draws until it is mended; `--case` plays them."""
MOST = 4
"""The latest arrival at which a fault strikes: later ones are like these."""


@dataclass(frozen=True)
class Case:
    """One fault at one arrival of one workload."""

    workload: str
    station: str
    nth: int
    fault: str
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.workload}, {self.station}, {self.nth}, {self.fault}"

    @classmethod
    def read(cls, words: str) -> "Case":
        """Read what `str` writes."""
        workload, station, nth, fault = (part.strip() for part in words.split(","))
        return cls(workload, station, int(nth), fault)

    @property
    def needs(self) -> frozenset[str]:
        return self.made().needs

    def made(self) -> Fault:
        return all_faults()[self.fault]()


@cache
def stations() -> dict[str, str]:
    """Return the stations in the code, and the module of each, by its syntax trees."""
    modules = dict[str, str]()
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        text = path.read_text()
        if "reach(" in text:
            modules |= {name: str(path.relative_to(ROOT)) for name in _reached(ast.parse(text))}
    return modules


def _reached(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reach":
            match node.args[:1]:
                case [ast.Constant(value=str(name))]:
                    yield name
                case _:
                    raise AssertionError(f"a station's name is a literal: {ast.unparse(node)}")


@cache
def reaches() -> dict[str, dict[str, int]]:
    """Return how often each workload reaches each station."""
    known: dict[str, dict[str, int]] = json.loads(REACHES.read_text()) if REACHES.exists() else {}
    return {workload: counts for workload, counts in known.items() if workload in WORKLOADS.keys() - OPEN.keys()}


def draw(seed: int, able: Collection[str] = ()) -> Case:
    """Return the case of a seed, for a stack that is able to do these things."""
    chance = random.Random(seed)
    there = sorted({station for counts in reaches().values() for station in counts})
    while True:
        station = chance.choice(there)
        workload = chance.choice(sorted(name for name, counts in reaches().items() if station in counts))
        faults = [name for name, make in sorted(all_faults().items()) if _can(make(), station, able)]
        if faults:
            nth = chance.randint(1, min(MOST, reaches()[workload][station]))
            return Case(workload, station, nth, chance.choice(faults), seed)


def _can(fault: Fault, station: str, able: Collection[str]) -> bool:
    return fault.needs <= set(able) and fault.fits(station)
