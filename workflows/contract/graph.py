"""The graph that the delegations of a result make: its cycles (spec: Result validation, 1) and its run order."""

from collections.abc import Iterator, Mapping, Sequence


def cycles(deps: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """A path `a, b, a` for every independent cycle, in the order of the entries; self references are left out."""
    state: dict[str, bool] = {}
    """Absent: never seen. True: on the path now. False: done with."""
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
