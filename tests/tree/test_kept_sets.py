"""Sets that wait while a tree starts nothing: those that fit are kept, the others are left out (B6)."""

import pytest

from tests.tree.simulator import AGENTS, ROOT, World, delegation, tree_input
from workflows.contract.models import Delegation, HumanQuestion
from workflows.model.briefs import Correction
from workflows.model.states import Continuation, JobState, TaskState
from workflows.policy.prompts.continuation import render_continuation
from workflows.policy.state_limits import KEPT_BYTES

ASKS = (HumanQuestion(id="q", prompt="which?"),)
MANY = tuple(delegation(f"x{n:03}", prompt="p" * 1_000) for n in range(KEPT_BYTES // 1_000))
FEW = (delegation("y"),)


def paused(*leads: str) -> World:
    """Return a tree in which one leg asks, and the others are coordinators that return later."""
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("who"), *(delegation(each, "lead") for each in leads))
    tree.leg("who", human_questions=ASKS)
    return tree


def back(tree: World, lead: str, legs: tuple[Delegation, ...], decision: str = "approved") -> None:
    tree.leg(lead, decision, *legs, agents=AGENTS)


@pytest.mark.ruling("B6", "F8")
def test_a_set_for_which_there_is_no_room_is_told_of_and_asked_for_again_after_the_pause() -> None:
    tree = paused("large", "small")
    back(tree, "large", MANY)
    back(tree, "small", FEW)
    [dropped] = [event for event in tree.said if event.kind == "delegation_dropped"]
    assert (dropped.job_id, dropped.data["delegations"]) == (f"{ROOT}.2", [leg.id for leg in MANY])
    assert "not kept" in dropped.message
    tree.resume("answer", "this")
    again, dispatched = tree.runs[-2:]
    assert (again.continuation, again.parent_job_id) == (Continuation.CORRECTIVE, f"{ROOT}.2")
    assert again.brief is not None
    assert (again.brief.correction, again.brief.refused[0].left_out) == (Correction.LEFT_OUT, len(MANY))
    assert dispatched.delegation_id == "y", "what was kept goes out as it was"
    tree.end(again.job_id, "approved", delegation("x"))
    assert tree.last.delegation_id == "x"


@pytest.mark.ruling("B6", "F2")
def test_who_asked_itself_is_told_with_the_answer_that_its_set_was_not_kept() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", *MANY, human_questions=ASKS)
    tree.resume("answer", "this")
    assert tree.last.continuation is Continuation.ANSWERED
    assert tree.last.brief is not None
    text = render_continuation(tree.last.brief, {})
    assert f"Not dispatched, and not listed here: {len(MANY)} delegations of the job `{ROOT}`." in text
    assert tree.state.root.left_out == 0


@pytest.mark.ruling("B6", "E6")
@pytest.mark.parametrize("waiting", [False, True])
def test_a_finalize_is_told_of_a_set_that_did_not_fit(waiting: bool) -> None:
    tree = paused("large", "small")
    if not waiting:
        tree.kill()
    back(tree, "large", MANY)
    back(tree, "small", FEW)
    tree.kill()
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.last.brief is not None
    sets = {each.job_id: (each.left_out, [leg.id for leg in each.delegations]) for each in tree.last.brief.refused}
    assert sets == {f"{ROOT}.2": (len(MANY), []), f"{ROOT}.3": (0, ["y"])}


@pytest.mark.ruling("B6", "A11")
def test_a_result_that_did_not_succeed_is_not_asked_for_its_set_again() -> None:
    tree = paused("large")
    back(tree, "large", MANY, "failed")
    tree.resume("answer", "this")
    assert (tree.named("large").state, tree.task_state()) == (JobState.FAILED, TaskState.BLOCKED)


@pytest.mark.ruling("B6", "D4")
def test_sets_are_kept_as_long_as_there_is_room_in_a_blocked_task_too() -> None:
    tree = World(tree_input()).begin()
    leads = ("one", "two", "three", "four")
    tree.coordinator("approved", delegation("bad"), *(delegation(each, "lead") for each in leads))
    tree.leg("bad", "failed")
    for lead in leads[:3]:
        back(tree, lead, MANY[: len(MANY) // 3])
    back(tree, "four", FEW)
    kept = [chain.held and [leg.id for leg in chain.held.delegations] for chain in tree.state.coordinators.values()]
    assert [len(each or ()) for each in kept[1:]] == [len(MANY) // 3, len(MANY) // 3, 0, 1]
