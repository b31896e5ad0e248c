"""Cycles among the delegations of a result (spec: Result validation, 1)."""

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
