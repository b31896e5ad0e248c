"""A verb that would end the tree instead of having its effect is neither offered nor taken, whichever bound it is."""

from collections.abc import Callable

import pytest

from tests.tree.simulator import ROOT, World, delegation, tokens, tree_input
from workflows.contract.models import HumanQuestion
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState

pytestmark = pytest.mark.ruling("F4", "C3", "C4")

COLOR = HumanQuestion(id="color", prompt="Which color?", choices=())
SPENT = {
    "tokens": Bounds(max_delegation_token_budget=10),
    "dollars": Bounds(max_delegation_cost_usd=0.00001),
    "clock": Bounds(max_delegation_wall_clock_seconds=20.0),
}


def asked_at_the_job_cap() -> World:
    tree = World(tree_input(Bounds(max_delegation_total_jobs=1))).begin()
    tree.coordinator("approved", delegation("a"))
    tree.leg("a", human_questions=(COLOR,))
    return tree


def coordinator_asks_at_the_job_cap() -> World:
    tree = World(tree_input(Bounds(max_delegation_total_jobs=2))).begin()
    tree.coordinator("approved", delegation("a"))
    tree.leg("a")
    tree.coordinator("approved", human_questions=(COLOR,))
    return tree


def asked_with_nothing_left(name: str) -> World:
    """Return a tree that asks while a leg waits for which no budget is left."""
    tree = World(tree_input(SPENT[name])).begin()
    tree.coordinator("approved", delegation("a"), delegation("b", deps=("a",)))
    tree.leg("a", usage=tokens(10), after=30.0, human_questions=(COLOR,))
    return tree


def failed_with_nothing_left(name: str) -> World:
    tree = World(tree_input(SPENT[name])).begin()
    human = delegation("a", failure_policy="escalate_human")
    tree.coordinator("approved", human, delegation("b"), delegation("c", deps=("b",)))
    tree.leg("a", "failed")
    tree.leg("b", usage=tokens(10), after=30.0)
    return tree


def failed_in_circles() -> World:
    """The last of the generations that came to the same."""
    tree = World(tree_input(Bounds(max_delegation_non_progress_streak=1))).begin()
    for number in range(3):
        leg = delegation("a", prompt=f"try {number}", failure_policy="escalate_human")
        tree.coordinator("approved", leg)
        tree.leg("a", "failed")
        if number < 2:
            tree.resume("continue")
    return tree


def failed_after_the_last_replan() -> World:
    tree = World(tree_input(Bounds(max_verify_replan_attempts=0))).begin()
    check = delegation("check", action="review", synthesis_rule="verify", failure_policy="escalate_human")
    tree.coordinator("approved", check)
    tree.leg("check", "failed")
    return tree


ASKS: dict[str, Callable[[], World]] = {
    "jobs": asked_at_the_job_cap,
    "own": coordinator_asks_at_the_job_cap,
    "tokens": lambda: asked_with_nothing_left("tokens"),
    "dollars": lambda: asked_with_nothing_left("dollars"),
    "clock": lambda: asked_with_nothing_left("clock"),
}
FAILURES: dict[str, tuple[Callable[[], World], str]] = {
    "tokens": (lambda: failed_with_nothing_left("tokens"), "used 10 of its 10 tokens"),
    "dollars": (lambda: failed_with_nothing_left("dollars"), "has cost"),
    "loops": (failed_in_circles, "generations in a row ended with the same"),
    "replans": (failed_after_the_last_replan, "no replan is left (limit 0)"),
}


def refused(tree: World, verb: str, text: str = "") -> str:
    """Return the refusal of a verb, after checking that the round and the tree are unchanged."""
    [before] = tree.open()
    tree.resume(verb, text)
    [still] = tree.open()
    assert (still.digest, still.verbs) == (before.digest, before.verbs)
    assert tree.task_state() is TaskState.AWAITING_HUMAN
    event = tree.said[-1]
    assert (event.kind, event.data["why"]) == ("resume_refused", "no_room"), "a refused order is no tripped bound"
    return event.message


@pytest.mark.ruling("F5", "E6")
@pytest.mark.parametrize("name", ASKS)
def test_an_answer_is_taken_whatever_is_used_up_and_the_finalize_has_it(name: str) -> None:
    tree = ASKS[name]()
    [shown] = tree.open()
    assert shown.verbs == ("answer", "extend")
    assert tree.state.task.next == shown.commands[0] == f'service resume {ROOT} answer "color: <text>"'
    tree.resume("answer", "color: red")
    assert (tree.open(), tree.last.continuation) == ([], Continuation.FINALIZE)
    assert tree.last.brief is not None
    assert [(each.id, each.text) for each in tree.last.brief.answers] == [("color", "red")]


@pytest.mark.parametrize("name", ASKS)
def test_an_abort_that_an_earlier_release_offered_in_place_of_an_answer_is_still_taken(name: str) -> None:
    tree = ASKS[name]()
    tree.resume("abort")
    assert tree.open() == []
    assert tree.state.finalize is not None
    assert tree.state.finalize.kind == "escalation_aborted"


@pytest.mark.parametrize("name", FAILURES)
def test_a_continue_that_would_end_the_tree_is_refused(name: str) -> None:
    make, why = FAILURES[name]
    tree = make()
    [shown] = tree.open()
    assert "continue" not in shown.verbs
    message = refused(tree, "continue")
    assert why in message
    assert message.endswith(f"round {shown.number} of {ROOT} still takes {', '.join(shown.verbs)}")


@pytest.mark.parametrize("name", SPENT)
def test_an_answer_and_a_continue_still_have_their_effect_where_nothing_waits_to_begin(name: str) -> None:
    """The continuation runs, is told, and can sum up; only more work is out of reach."""
    tree = World(tree_input(SPENT[name])).begin()
    tree.coordinator("approved", delegation("a"))
    tree.leg("a", usage=tokens(10), after=30.0, human_questions=(COLOR,))
    assert tree.open()[0].verbs == ("answer", "extend")
    tree.resume("answer", "color: red")
    assert tree.last.continuation is Continuation.ANSWERED
    tree = World(tree_input(SPENT[name])).begin()
    tree.coordinator("approved", delegation("a", failure_policy="escalate_human"))
    tree.leg("a", "failed", usage=tokens(10), after=30.0)
    assert tree.open()[0].verbs == ("continue", "abort", "extend")
    tree.resume("continue")
    assert tree.last.continuation is Continuation.NORMAL


@pytest.mark.ruling("K1")
def test_the_end_of_a_tree_says_that_a_person_aborted_it() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a", failure_policy="escalate_human"))
    tree.leg("a", "failed")
    tree.resume("abort")
    tree.coordinator("approved")
    assert tree.close is not None
    assert tree.close.aborted == f"round 1 of {ROOT} was aborted by ann, in the terminal"


def test_an_abort_is_taken_of_an_ask_round_only_where_an_answer_is_not() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", human_questions=(COLOR,))
    tree.resume("abort")
    assert tree.said[-1].data["why"] == "wrong_verb"
    assert tree.open()[0].verbs == ("answer", "extend")


@pytest.mark.parametrize("name", ASKS)
def test_in_a_replay_an_answer_is_refused_as_an_earlier_release_refused_it(name: str) -> None:
    tree = ASKS[name]()
    tree.resume("answer", "color: red", answers=False)
    assert len(tree.open()) == 1
    assert ("resume_refused", "no_room") in [(each.kind, each.data.get("why")) for each in tree.said[-2:]]


def test_trying_a_verb_changes_nothing_of_the_tree() -> None:
    tree = asked_with_nothing_left("tokens")
    assert tree.named("b").state is JobState.QUEUED
    assert tree.state.finalize is None
    assert tree.flying == {}
