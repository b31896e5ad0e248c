"""A tree that a bound ended before what was planned ran is cut short, not done."""

from collections.abc import Callable

import pytest

from tests.tree.simulator import ROOT, World, delegation, done, tokens, tree_input
from workflows.contract.models import HumanQuestion
from workflows.model.event_kinds import TELLS_PEOPLE, EventKind
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor
from workflows.policy.cut_short import task_words
from workflows.tree.details import details

pytestmark = pytest.mark.ruling("G1.cut")

ANEW = "service agent implement lead 'reach the goal' --repo repo"


def asked(legs: int, **bounds: int) -> World:
    """Return a tree whose lead asked for this many legs."""
    tree = World(tree_input(Bounds.model_validate(bounds))).begin()
    tree.coordinator("approved", *(delegation(f"leg-{number}") for number in range(legs)))
    return tree


def summed_up(tree: World) -> World:
    assert tree.last.continuation is Continuation.FINALIZE
    tree.coordinator("approved")
    assert done(tree), "its task's state is the spec's"
    return tree


def test_sixty_legs_at_a_width_of_sixteen_are_cut_short() -> None:
    tree = summed_up(asked(60, max_delegation_width=16))
    task, words = tree.state.task, "the lead asked for 60 parts, the limit is 16 (`max_delegation_width`)"
    assert (task.cut_short, task_words(task), task.reason) == (True, "cut short", f"cut short: {words}")
    assert task.next == f"write max_delegation_width = 60 below [orchestrate] in config.toml; then: {ANEW}"
    assert "**cut short**: the lead asked for 60 parts" in details(tree.state)
    [notified] = [event for event in tree.events if event.kind in TELLS_PEOPLE]
    assert (notified.kind, notified.message) == ("tree_cut_short", task.reason)
    assert tree.events[-1].message == f"the task was {task.reason}"
    assert tree.close is not None
    assert tree.close.cut_short


def test_sixty_legs_at_a_width_of_sixty_four_are_done() -> None:
    tree = asked(60, max_delegation_width=64)
    for number in range(60):
        tree.leg(f"leg-{number}")
    tree.coordinator("approved")
    assert (done(tree), tree.state.task.cut_short, tree.state.task.next) == (True, False, "")
    assert task_words(tree.state.task) == "done"


def test_a_tree_all_of_whose_legs_ran_is_done_although_no_job_is_left_for_its_lead() -> None:
    tree = asked(2, max_delegation_total_jobs=2)
    tree.leg("leg-0")
    tree.leg("leg-1")
    summed_up(tree)
    assert (tree.state.task.cut_short, tree.state.task.waits_for) == (False, WaitsFor.NOTHING)


def too_many_jobs() -> World:
    return asked(3, max_delegation_total_jobs=2)


def too_deep() -> World:
    tree = World(tree_input(Bounds(max_delegation_depth=1))).begin()
    tree.coordinator("approved", delegation("a"))
    tree.leg("a")
    tree.coordinator("approved", delegation("b"))
    return tree


def out_of(**bounds: float) -> World:
    tree = World(tree_input(Bounds.model_validate(bounds))).begin()
    tree.coordinator("approved", delegation("a"), delegation("b", deps=("a",)))
    tree.leg("a", usage=tokens(10), after=100)
    assert tree.named("b").state is JobState.SKIPPED
    return tree


def not_verified() -> World:
    tree = World(tree_input(Bounds(max_verify_replan_attempts=0))).begin()
    tree.coordinator("approved", delegation("check", action="review", synthesis_rule="verify"))
    tree.leg("check", "changes_requested")
    return tree


def answered_at_the_cap() -> World:
    tree = World(tree_input(Bounds(max_delegation_total_jobs=1))).begin()
    tree.coordinator("approved", delegation("a"))
    tree.leg("a", human_questions=(HumanQuestion(id="q", prompt="which?"),))
    tree.resume("answer", "q: this")
    return tree


CUTS: list[tuple[Callable[[], World], str, str]] = [
    (lambda: asked(60, max_delegation_width=16), "the lead asked for 60 parts", "max_delegation_width = 60"),
    (too_many_jobs, "the lead needed 3 more jobs after 0, the limit is 2", "max_delegation_total_jobs = 3"),
    (answered_at_the_cap, "the lead needed 1 more job after 1, the limit is 1", "max_delegation_total_jobs = 2"),
    (too_deep, "the lead asked for parts at depth 2, the limit is 1", "max_delegation_depth = 2"),
    (lambda: out_of(max_delegation_wall_clock_seconds=60), "it ran longer than 1m", 'wall_clock = "2m"'),
    (lambda: out_of(max_delegation_token_budget=10), "it used 10 tokens, the limit is 10", "token_budget = 20"),
    (lambda: out_of(max_delegation_cost_usd=0.00001), "the task has cost", "max_delegation_cost_usd = 2e-05"),
    (not_verified, "no replan is left (limit 0)", "max_verify_replan_attempts = 1"),
]


@pytest.mark.ruling("C1", "C2", "C3", "C4", "E5")
@pytest.mark.parametrize(("make", "words", "raised"), CUTS)
def test_every_bound_is_named_with_its_setting_and_the_way_on(
    make: Callable[[], World], words: str, raised: str
) -> None:
    task = summed_up(make()).state.task
    assert (task.state, task.cut_short) == (TaskState.DONE, True)
    assert task.reason.startswith("cut short: ")
    assert words in task.reason
    setting = raised.split(" = ")[0]
    assert f"{setting}`)" in task.reason
    assert f"{raised} below [orchestrate]" in task.next
    assert task.next.endswith(ANEW)


def test_every_bound_is_among_them() -> None:
    kinds = {kind for make, _, _ in CUTS for kind in make().kinds()}
    assert {kind for kind in EventKind if kind.endswith(("_exceeded", "_exhausted"))} <= kinds


def test_a_set_that_no_setting_would_let_pass_is_started_anew_as_it_is() -> None:
    task = summed_up(asked(257, max_delegation_width=1000)).state.task
    assert task.reason == "cut short: the lead asked for 257 parts, the limit is 256 (`max_delegation_width`)"
    assert task.next == ANEW


def test_what_a_person_ended_is_not_cut_short() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a", failure_policy="escalate_human"), delegation("b", deps=("a",)))
    tree.leg("a", "failed")
    tree.resume("abort")
    summed_up(tree)
    assert not tree.state.task.cut_short
    assert tree.state.task.reason.startswith(f"finalized: round 1 of {ROOT} was aborted")
