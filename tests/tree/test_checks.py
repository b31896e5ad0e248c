"""The checks of a set in their order, and the jobs that count against the budget."""

import pytest

from tests.tree.simulator import LEAD, ROOT, World, delegation, done, tokens, tree_input
from workflows.contract.models import Delegation, HumanQuestion
from workflows.model.settings import Bounds
from workflows.model.states import Continuation

GHOSTS = delegation("a", "ghost"), delegation("b", "ghost")
NARROW = Bounds(max_delegation_width=1)
POOR = Bounds(max_delegation_token_budget=1)


def tree(bounds: Bounds | None = None) -> World:
    return World(tree_input(bounds)).begin()


def said(world: World) -> list[str]:
    return [kind for kind in world.kinds() if kind not in {"delegation_finalize_enqueued", "delegation_budget_warning"}]


@pytest.mark.ruling("C1", "spec:ephemeral.leaf_only")
def test_an_ephemeral_worker_s_set_meets_no_other_check() -> None:
    world = tree(NARROW)
    world.coordinator("approved", delegation("e", ephemeral=True))
    world.leg("e", "approved", *GHOSTS)
    assert said(world) == ["delegation_ignored_ephemeral"]


@pytest.mark.ruling("C1", "G1")
def test_the_finalize_s_set_meets_no_other_check() -> None:
    world = tree(NARROW)
    world.coordinator("approved", *GHOSTS)
    world.coordinator("approved", *GHOSTS)
    assert said(world) == ["delegation_width_exceeded", "delegation_finalized"]


@pytest.mark.ruling("C1", "G2")
def test_a_killed_tree_s_set_meets_no_other_check() -> None:
    world = tree(NARROW)
    world.kill()
    world.coordinator("approved", *GHOSTS)
    assert said(world) == ["delegation_killed", "delegation_dropped"]


@pytest.mark.ruling("C1")
@pytest.mark.parametrize(
    ("bounds", "kind"),
    [(NARROW, "delegation_width_exceeded"), (POOR, "delegation_cost_exceeded")],
    ids=["width", "tokens"],
)
def test_bounds_come_before_preflight(bounds: Bounds, kind: str) -> None:
    world = tree(bounds)
    world.coordinator("approved", *GHOSTS, usage=tokens(1))
    assert said(world) == [kind]
    assert world.last.continuation is Continuation.FINALIZE


@pytest.mark.ruling("C1", "C6")
def test_preflight_comes_before_the_loop() -> None:
    world = tree()
    world.coordinator("approved", delegation("a"))
    world.leg("a")
    world.coordinator("approved", delegation("a"), agents=())
    assert said(world) == ["delegation_preflight_failed"]


@pytest.mark.ruling("C6", "spec:limits.preflight_streak")
def test_unroutable_sets_go_on_with_the_streak_of_idle_generations() -> None:
    world = tree()
    for generation in "ab":
        world.coordinator("approved", delegation(generation))
        world.leg(generation, progress="same")
    for _ in range(2):
        world.coordinator("approved", *GHOSTS)
    assert [run.continuation for run in world.runs[-2:]] == [Continuation.CORRECTIVE, Continuation.FINALIZE]


@pytest.mark.ruling("H1", "H2")
def test_a_set_that_is_refused_as_a_repetition_is_no_dispatched_set() -> None:
    world = tree()
    world.coordinator("approved", delegation("a"))
    world.leg("a")
    world.coordinator("approved", delegation("a"))
    assert len(world.state.root.ladder.window) == 1


def spent(world: World, *legs: Delegation) -> int:
    before = world.state.spent_jobs
    world.coordinator("approved", *legs)
    return world.state.spent_jobs - before


@pytest.mark.ruling("C3", "spec:limits.job_budget")
def test_everything_under_the_root_counts_and_the_root_does_not() -> None:
    world = tree()
    assert world.state.spent_jobs == 0
    assert spent(world, delegation("a", retry=1), delegation("b", deps=("a",))) == 2, "deferred legs count at once"
    world.leg("a", "failed")
    assert world.state.spent_jobs == 3, "a retry"
    world.fire()
    assert world.state.spent_jobs == 3, "and not twice"
    world.leg("a", "failed")
    world.retry(f"{ROOT}.1")
    assert world.state.spent_jobs == 4, "an operator's re-run"
    world.leg("a")
    world.leg("b")
    assert world.state.spent_jobs == 5, "a continuation"
    world.coordinator("blocked")
    world.retry(world.state.root.job_id)
    assert world.state.spent_jobs == 6, "a re-run of a coordinator"


@pytest.mark.ruling("C3")
def test_a_re_run_for_which_no_job_is_left_is_refused_with_its_event() -> None:
    world = tree(Bounds(max_delegation_total_jobs=1))
    world.coordinator("approved", delegation("a"))
    world.leg("a", "failed")
    world.retry(f"{ROOT}.1")
    assert world.said[-1].kind == "retry_refused"
    assert "per-root job budget of 1" in world.said[-1].message
    assert not world.flying


@pytest.mark.ruling("C4")
def test_a_retry_meets_the_budgets_too() -> None:
    world = tree(Bounds(max_delegation_token_budget=5))
    world.coordinator("approved", delegation("a", retry=1))
    world.leg("a", "failed", usage=tokens(5))
    world.fire()
    assert "delegation_cost_exceeded" in world.kinds()
    assert [run.attempt for run in world.runs if run.delegation_id] == [1]


@pytest.mark.ruling("C4", "spec:limits.wall_clock")
def test_the_wall_clock_runs_from_the_root_s_creation() -> None:
    world = World(tree_input(Bounds(max_delegation_wall_clock_seconds=100), created_at=900.0))
    world.begin()
    world.coordinator("approved", delegation("a"), after=101)
    assert "delegation_walltime_exceeded" in world.kinds()


@pytest.mark.ruling("C1", "spec:ephemeral.leaf_only")
@pytest.mark.parametrize("decision", ["implemented", "failed"])
def test_an_ephemeral_root_never_delegates(decision: str) -> None:
    """The root is a pipeline's stage: no leg, no continuation, and its decision is the tree's."""
    world = World(tree_input(worker=LEAD.model_copy(update={"ephemeral": True}))).begin()
    world.coordinator(decision, delegation("a"), delegation("b"))
    assert world.kinds()[0] == "delegation_ignored_ephemeral"
    assert "delegation_dropped" not in world.kinds()
    assert (len(world.runs), world.state.closed, done(world)) == (1, True, decision == "implemented")


@pytest.mark.ruling("C1", "F2")
def test_an_ephemeral_root_may_ask_and_what_it_delegates_is_still_ignored() -> None:
    world = World(tree_input(worker=LEAD.model_copy(update={"ephemeral": True}))).begin()
    world.coordinator("approved", delegation("a"), human_questions=(HumanQuestion(id="q", prompt="?"),))
    world.resume("answer", "yes")
    assert world.last.brief is not None
    assert (world.last.continuation, world.last.brief.refused) == (Continuation.ANSWERED, ())


@pytest.mark.ruling("C6", "N5")
def test_a_tree_that_may_only_read_starts_no_implementation_at_any_depth() -> None:
    """A token of scope `ask` started it: its lead may ask and have reviewed, and no agent below it may do more."""
    world = World(tree_input(action="ask", read_only=True)).begin()
    assert world.last.read_only
    world.coordinator("approved", delegation("a"), delegation("b", "lead", "ask"))
    assert said(world) == ["delegation_preflight_failed"]
    assert "token of scope ask" in str(world.said[0].data["faults"])
    world.coordinator("approved", delegation("b", "lead", "ask"), delegation("c", "reader", "review"))
    assert {run.delegation_id: run.read_only for run in world.flying.values()} == {"b": True, "c": True}
    world.leg("b", "approved", delegation("d"))
    assert said(world)[-1] == "delegation_preflight_failed"
    leg = world.last
    assert (leg.continuation, leg.read_only) == (Continuation.CORRECTIVE, True)
    world.end(leg.job_id, "approved", delegation("d", ephemeral=True))
    assert said(world).count("delegation_preflight_failed") == 3
