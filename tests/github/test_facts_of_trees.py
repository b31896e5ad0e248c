"""Facts and texts of generated trees, with the rows their workflows would write."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.depth import cases
from tests.tree.generated import grow
from workflows.github.bound_tree import BoundTree
from workflows.github.commands import commands_in
from workflows.github.facts import FactKind, due, fact_in
from workflows.github.texts.comments import body


@pytest.mark.ruling("L3")
@settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), max_examples=cases(40, 1_000))
@given(data=st.binary(min_size=40, max_size=600))
def test_every_tree_can_be_told(data: bytes) -> None:
    """One status, one pause a round, an end exactly if the tree is over; every fact has its text and its mark."""
    world = grow(data)
    assert world.task
    tree = BoundTree(
        task=world.task,
        jobs=tuple(world.jobs.values()),
        rounds=tuple(world.rounds.values()),
        events=tuple(world.events),
        owner="octocat",
    )
    facts = due(tree)
    kinds = [fact.kind for fact in facts]
    assert kinds.count(FactKind.STATUS) == 1
    assert kinds.count(FactKind.PAUSE) == len(tree.rounds)
    assert kinds.count(FactKind.END) == tree.task.state.is_closed
    assert len({fact.fact_id for fact in facts}) == len(facts)
    for fact in facts:
        text = body(tree, fact)
        assert fact_in(text) == fact.fact_id
        assert commands_in(text) == ()
        assert fact.kind is not FactKind.END or fact.about, "some event ended it"
