"""A result with more delegations than one may have is a width that is exceeded, and no fault of the contract (C1)."""

import json

import pytest

from tests.tree.simulator import ROOT, World, delegation, tree_input
from workflows.contract.models import HumanQuestion
from workflows.contract.parse import Accepted, Rejected, read_result
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, JobState, TaskState

pytestmark = pytest.mark.ruling("C1", "B6")

MANY = 100_000


def printed(count: int, **body: object) -> str:
    legs = [{"id": f"l{n}", "agent": "dev", "action": "ask", "prompt": "look"} for n in range(count)]
    members = {"decision": "approved", "summary": "shared out", "delegations": legs}
    return json.dumps({"service_result": members | body})


@pytest.mark.parametrize("count", [257, MANY])
def test_the_contract_takes_it_and_keeps_how_many_there_were(count: int) -> None:
    accepted = read_result(printed(count))
    assert isinstance(accepted, Accepted)
    assert (accepted.result.delegations, accepted.not_kept) == ((), count)


def test_as_many_as_one_may_have_are_kept() -> None:
    accepted = read_result(printed(256))
    assert isinstance(accepted, Accepted)
    assert (len(accepted.result.delegations), accepted.not_kept) == (256, 0)


def test_what_else_is_wrong_with_it_is_a_fault_as_ever() -> None:
    rejected = read_result(printed(MANY, decision="skipped", summary=""))
    assert isinstance(rejected, Rejected)
    messages = [each.message for each in rejected.faults]
    assert messages == ["summary is required", "delegations must be empty when decision is skipped"]


@pytest.mark.parametrize("width", [16, 1_000_000])
def test_a_tree_is_finalized_for_it_whatever_its_own_width_is(width: int) -> None:
    tree = World(tree_input(Bounds(max_delegation_width=width, max_delegation_total_jobs=10**7))).begin()
    tree.coordinator("approved", not_kept=MANY)
    [event] = [each for each in tree.said if each.kind == "delegation_width_exceeded"]
    assert event.data == {"width": MANY, "cap": min(width, 256)}
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.last.brief is not None
    [refused] = tree.last.brief.refused
    assert (refused.left_out, refused.delegations) == (MANY, ())
    assert len(tree.last.model_dump_json()) < 4_000, "a prompt of its size would be told otherwise"
    tree.coordinator("approved")
    assert tree.task_state() is TaskState.DONE


def test_a_leg_s_is_refused_too() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a", "lead"))
    tree.leg("a", not_kept=MANY)
    assert "delegation_width_exceeded" in tree.kinds()
    assert tree.last.continuation is Continuation.FINALIZE


def test_held_back_while_a_person_is_asked_it_is_told_as_what_was_not_kept() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", not_kept=MANY, human_questions=(HumanQuestion(id="color", prompt="Which?"),))
    tree.resume("answer", "color: red")
    assert tree.last.continuation is Continuation.ANSWERED
    assert tree.last.brief is not None
    [refused] = tree.last.brief.refused
    assert refused.left_out == MANY


def test_of_a_failed_result_it_is_dropped() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("failed", not_kept=MANY)
    [event] = [each for each in tree.said if each.kind == "delegation_dropped"]
    assert f"{MANY:,} delegations not dispatched" in event.message
    assert tree.jobs[ROOT].state is JobState.FAILED


def test_a_throwaway_worker_s_and_the_finalize_s_are_ignored() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a", ephemeral=True))
    tree.leg("a", not_kept=MANY)
    assert tree.kinds() == ["delegation_ignored_ephemeral"]
    tree.coordinator("approved", not_kept=MANY)
    assert tree.last.continuation is Continuation.FINALIZE
    tree.coordinator("approved", not_kept=MANY)
    assert tree.kinds()[-1] == "delegation_finalized"
    assert tree.task_state() is TaskState.DONE
