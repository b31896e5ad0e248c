from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.contract.graph import cycles, topological

GRAPHS = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefz"), unique=True))


def reaches_itself(deps: dict[str, list[str]], start: str) -> bool:
    seen: set[str] = set()
    rest = [dep for dep in deps[start] if dep != start]
    while rest:
        leg = rest.pop()
        if leg not in seen:
            seen.add(leg)
            rest.extend(dep for dep in deps.get(leg, []) if dep != leg)
    return start in seen


@pytest.mark.ruling("A4")
@given(GRAPHS)
def test_a_cycle_is_named_exactly_when_there_is_one(deps: dict[str, list[str]]) -> None:
    paths = list(cycles(deps))
    assert bool(paths) == any(reaches_itself(deps, leg) for leg in deps)
    for path in paths:
        assert path[0] == path[-1]
        assert len(path) > 2
        assert all(after in deps[before] for before, after in pairwise(path))


@pytest.mark.ruling("A4")
def test_a_long_chain_is_no_recursion() -> None:
    assert list(cycles({f"l{n}": [f"l{n + 1}"] for n in range(5_000)})) == []


@pytest.mark.ruling("spec:validation.deps")
def test_an_order_with_an_unknown_dependency_is_none() -> None:
    assert topological({"a": ["b"], "b": []}) == ["b", "a"]
    assert topological({"a": ["x"]}) is None
