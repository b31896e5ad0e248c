"""The graph of a result's delegations: cycles (spec: Result validation, 1), run order, duplicates (ruling C5)."""

from collections.abc import Iterator, Mapping, Sequence

from workflows.contract.models import Delegation


def cycles(deps: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield a path `a, b, a` for every independent cycle, in the order of the entries; self references are left out."""
    state: dict[str, bool] = {}
    """Absent: the id is not visited. True: it is on the current path. False: it is finished."""
    for first in deps:
        path: list[tuple[str, Iterator[str]]] = []
        _enter(first, deps, state, path)
        while path:
            leg, rest = path[-1]
            following = next(rest, None)
            if following is None:
                state[leg] = False
                path.pop()
            elif state.get(following) and following != leg:
                names = [name for name, _ in path]
                yield (*names[names.index(following) :], following)
            else:
                _enter(following, deps, state, path)


def _enter(
    leg: str, deps: Mapping[str, Sequence[str]], state: dict[str, bool], path: list[tuple[str, Iterator[str]]]
) -> None:
    if leg in deps and leg not in state:
        state[leg] = True
        path.append((leg, iter(deps[leg])))


def topological(deps: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return the ids in order, dependencies first; None for an unknown dependency or a cycle."""
    order: dict[str, None] = {}
    waiting = list(deps)
    while waiting:
        free = [leg for leg in waiting if all(dep in order for dep in deps[leg])]
        if not free:
            return None
        order.update(dict.fromkeys(free))
        waiting = [leg for leg in waiting if leg not in order]
    return list(order)


def twins(delegations: Sequence[Delegation]) -> dict[str, str]:
    """Return each duplicate delegation with the leg that runs for it, within one result (ruling C5).

    The first duplicate in dependency order runs: with any other, a leg could end up waiting for itself.
    """
    by_id = {delegation.id: delegation for delegation in delegations}
    first: dict[str, str] = {}
    duplicates: dict[str, str] = {}
    for leg in topological({leg: delegation.deps for leg, delegation in by_id.items()}) or ():
        fingerprint = by_id[leg].fingerprint
        if fingerprint and first.setdefault(fingerprint, leg) != leg:
            duplicates[leg] = first[fingerprint]
    return duplicates
