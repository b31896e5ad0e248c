import pytest

from tests.tree.legs import batch as a_batch
from tests.tree.legs import leg
from tests.tree.simulator import World, delegation, tree_input
from workflows.contract.graph import topological, twins


@pytest.mark.ruling("spec:run_order.1", "spec:run_order.2", "spec:delegation.deps")
def test_a_leg_is_ready_when_its_dependencies_succeeded() -> None:
    batch = a_batch(leg("a", state="succeeded"), leg("b", state="running"), leg("c", "a", "b"), leg("d", "a"))
    assert [ready.id for ready in batch.ready(())] == ["d"]


@pytest.mark.ruling("B5")
def test_a_leg_that_is_on_offer_is_not_ready_again() -> None:
    batch = a_batch(leg("a"), leg("b"))
    assert [ready.id for ready in batch.ready({batch.legs["a"].job_id})] == ["b"]


@pytest.mark.ruling("C7", "spec:delegation.deps")
@pytest.mark.parametrize("ended", ["failed", "blocked", "cancelled", "skipped"])
def test_what_depends_on_a_lost_leg_can_never_run_and_so_on_down(ended: str) -> None:
    batch = a_batch(leg("a", state=ended), leg("b", "a"), leg("c", "b"), leg("d"))
    skipped = []
    for lost, culprit in batch.unreachable():
        skipped.append((lost.id, culprit.id))
        lost.state = type(lost.state)("skipped")
    assert skipped == [("b", "a"), ("c", "b")]


@pytest.mark.ruling("I3")
def test_legs_that_share_a_worktree_wait_for_each_other() -> None:
    world = World(tree_input(), patient=True).begin()
    world.host()
    world.coordinator("approved", delegation("a", worktree="w"), delegation("b", worktree="w"), delegation("c"))
    assert [run.delegation_id for run in world.offered.values()] == ["a", "c"]


@pytest.mark.ruling("D1")
def test_a_batch_is_settled_when_every_leg_is_terminal_and_a_twin_does_not_count() -> None:
    assert a_batch(leg("a", state="skipped"), leg("b", state="cancelled"), leg("c", twin="a")).is_settled
    assert not a_batch(leg("a", state="succeeded"), leg("b", state="running")).is_settled


@pytest.mark.ruling("I1", "I2")
def test_contributors_are_all_legs_it_depends_on_dependencies_first() -> None:
    batch = a_batch(leg("d", "c", "b"), leg("c", "a", action="ask"), leg("b", "a"), leg("a"), leg("x"))
    assert [each.id for each in batch.contributors(batch.legs["d"])] == ["a", "c", "b"]
    assert batch.contributors(batch.legs["a"]) == []


@pytest.mark.ruling("spec:delegation.deps")
def test_order_knows_cycles_and_strangers() -> None:
    assert topological({"b": ["a"], "a": [], "c": ["b"]}) == ["a", "b", "c"]
    assert topological({"a": ["b"], "b": ["a"]}) is None
    assert topological({"a": ["ghost"]}) is None


@pytest.mark.ruling("C5", "spec:delegation.fingerprint")
def test_the_leg_that_runs_is_the_first_in_dependency_order() -> None:
    a = delegation("a", fingerprint="x", deps=("c",))
    b = delegation("b", fingerprint="x")
    c = delegation("c", deps=("b",))
    assert twins([a, b, c]) == {"a": "b"}, "were it a, it would wait for itself"
    assert twins([delegation("a"), delegation("b"), delegation("c", fingerprint="y")]) == {}
