"""Which leg may run when (spec: delegation run order; rulings C7, I1 to I3)."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from workflows.tree.jobs import JobState
from workflows.tree.state import TERMINAL, Leg


def topological(deps: Mapping[str, Sequence[str]]) -> list[str] | None:
    """The ids, dependencies first and otherwise as given; None when a dep is unknown or they go in a circle."""
    order: dict[str, None] = {}
    waiting = list(deps)
    while waiting:
        free = [leg for leg in waiting if all(dep in order for dep in deps[leg])]
        if not free:
            return None
        order.update(dict.fromkeys(free))
        waiting = [leg for leg in waiting if leg not in order]
    return list(order)


def acting(legs: Mapping[str, Leg], leg_id: str) -> Leg:
    """The leg that runs for this id: itself, or its twin (ruling C5)."""
    leg = legs[leg_id]
    return legs[leg.twin] if leg.twin else leg


def acting_deps(legs: Mapping[str, Leg], leg: Leg) -> list[Leg]:
    """What this leg waits for."""
    return [acting(legs, dep) for dep in leg.deps]


def ready(legs: Mapping[str, Leg], offered: Collection[str], busy_worktrees: Collection[str]) -> Leg | None:
    """The next leg that may start: not out yet, its dependencies succeeded, its shared worktree free (ruling I3)."""
    for leg in legs.values():
        if leg.state is not JobState.QUEUED or leg.twin or leg.job_id in offered:
            continue
        if leg.worktree and leg.worktree in busy_worktrees:
            continue
        if all(dep.state is JobState.SUCCEEDED for dep in acting_deps(legs, leg)):
            return leg
    return None


def unreachable(legs: Mapping[str, Leg]) -> Iterator[tuple[Leg, Leg]]:
    """Legs that can never run, each with the dependency that ended otherwise; until there are no more (ruling C7)."""
    found = True
    while found:
        found = False
        for leg in legs.values():
            if leg.state is not JobState.QUEUED or leg.twin:
                continue
            culprit = next((dep for dep in acting_deps(legs, leg) if _lost(dep)), None)
            if culprit is not None:
                found = True
                yield leg, culprit


def _lost(leg: Leg) -> bool:
    return leg.state in TERMINAL and leg.state is not JobState.SUCCEEDED


def settled(legs: Mapping[str, Leg]) -> bool:
    """Every leg is terminal (ruling D1)."""
    return all(leg.state in TERMINAL for leg in legs.values() if not leg.twin)


def contributors(legs: Mapping[str, Leg], leg: Leg) -> list[Leg]:
    """The legs whose work this one must see, transitively, in merge order (rulings I1, I2)."""
    wanted: dict[str, None] = {}
    frontier = acting_deps(legs, leg)
    while frontier:
        dep = frontier.pop()
        if dep.id not in wanted:
            wanted[dep.id] = None
            frontier += acting_deps(legs, dep)
    return [each for each in merge_order(legs) if each.id in wanted]


def merge_order(legs: Mapping[str, Leg]) -> list[Leg]:
    """The legs that run, dependencies first and otherwise as given."""
    deps = {each.id: [dep.id for dep in acting_deps(legs, each)] for each in legs.values() if not each.twin}
    return [legs[each] for each in topological(deps) or ()]
