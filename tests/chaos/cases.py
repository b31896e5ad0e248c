"""Cases: what a seed stands for, drawn among all stations that a workload reaches and all faults that fit there."""

import ast
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.chaos.faults import all_faults
from tests.chaos.faults.injector import Injected
from tests.chaos.faults.none import NoFault
from tests.chaos.protocol import Fault
from tests.chaos.workloads import WORKLOADS, Workload

ROOT = Path(__file__).parents[2]
REACHES = Path(__file__).with_name("reaches.json")
"""How often each workload reaches each station at least; written by `python -m tests.chaos --profile`."""
PACKAGES = ("workflows", "activities", "bridge", "cli")
WRITE = "rows to be written", "rows written"
"""Stations with a detail: the name of the write, which tells what of a tree it is about."""
OPEN: dict[str, str] = {}
"""Workloads with a known fault of the product, which no seed draws until it is mended; `--case` plays them."""
NOT_DRAWN = NoFault.name, Injected.name
MOST = 4
"""The latest arrival at which a fault strikes: later ones are like these."""
RARE = 300
"""A fault that few workloads meet is drawn so many times as often as another one."""
OF_FLEETS = frozenset({"lines", "postgres", "group", "faketime"})
"""The needs of faults that a stack with two hosts meets."""
OF_WORKLOADS = frozenset({"hub", "script", "model"})
"""The needs of faults that not every workload meets."""
ON_A_FLEET = 4
"""A workload on two hosts, beside which nothing else can be played, is drawn so many times less often."""
LASTING, ALONE = 10, 15
"""How many brief faults are drawn for each one that lasts, and for each one beside which nothing else can be played."""


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
        return self.made().needs | WORKLOADS[self.workload].needs

    @property
    def is_alone(self) -> bool:
        """True if nothing else is under way on its stack."""
        return self.made().alone or bool(WORKLOADS[self.workload].loses)

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


def draw(seed: int) -> Case:
    """Return the case of a seed, the same on every machine."""
    chance = random.Random(seed)
    there = sorted({station for counts in reaches().values() for station in counts})
    while True:
        station = chance.choice(there)
        workloads = sorted(name for name, counts in reaches().items() if station in counts)
        [workload] = chance.choices(workloads, [1 / ON_A_FLEET if WORKLOADS[name].loses else 1 for name in workloads])
        if faults := [fault for fault in _made() if fault.fits(station) and _is_had(fault, WORKLOADS[workload])]:
            nth = chance.randint(1, min(MOST, reaches()[workload][station]))
            fault = chance.choices(faults, [_weights()[fault.name] for fault in faults])[0]
            return Case(workload, station, nth, fault.name, seed)


def _is_had(fault: Fault, workload: Workload) -> bool:
    """Return whether one stack, and the workload's agents, can have what both need. A fleet's server is no member."""
    is_of_server = getattr(fault, "part", "") == "server"
    if "hosts" in workload.needs and (is_of_server or not fault.needs <= OF_FLEETS | OF_WORKLOADS):
        return False
    return fault.needs & OF_WORKLOADS <= workload.has


def _made() -> list[Fault]:
    return [make() for name, make in sorted(all_faults().items()) if name not in NOT_DRAWN]


@cache
def _weights() -> dict[str, float]:
    """Return how often each fault is drawn where it fits: less if it lasts, more if it fits few stations."""
    there = {station for counts in reaches().values() for station in counts}

    def cost(fault: Fault) -> float:
        lasts = ALONE if fault.alone else LASTING if fault.seconds else 1
        few = RARE if fault.needs & {"hub", "model"} else 1
        return lasts * math.sqrt(sum(map(fault.fits, there))) / few

    return {fault.name: 1 / cost(fault) for fault in _made()}
