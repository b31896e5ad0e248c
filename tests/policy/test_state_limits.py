"""Limits on what a tree keeps of its jobs' results; `tests/tree` checks that it keeps no more."""

import pytest

from tests.tree.simulator import delegation
from workflows.contract.models import HumanQuestion
from workflows.contract.size_limits import size
from workflows.model.jobs import JobOutcome
from workflows.model.rounds import Asked
from workflows.model.states import JobState
from workflows.policy import state_limits


def outcome(**fields: object) -> JobOutcome:
    return JobOutcome.model_validate({"job_id": "job", "state": JobState.SUCCEEDED} | fields)


def new(leg: str = "a", prompt: str = "which?", question_id: str = "q") -> Asked:
    return Asked(id=question_id, question=HumanQuestion(id=question_id, prompt=prompt), job_id="job", leg=leg)


@pytest.mark.ruling("B6")
def test_sets_share_one_bound() -> None:
    many = outcome(delegations=tuple(delegation(f"x{n}", prompt="p" * 1_000) for n in range(70)))
    few = outcome(delegations=(delegation("y"),))
    assert state_limits.fits(many, [])
    assert not state_limits.fits(many, [many])
    assert state_limits.fits(few, [many])
    assert state_limits.fits(many, [state_limits.left_out("job", 70), state_limits.without_set(many)])


@pytest.mark.ruling("F2")
def test_the_same_question_of_a_leg_waits_once_and_a_taken_id_gets_its_legs_name() -> None:
    first = state_limits.waiting_question(new(), [], (), [])
    assert first is not None
    assert state_limits.waiting_question(new(), [first], {"q"}, [first]) is None
    other = state_limits.waiting_question(new("b"), [first], {"q"}, [first])
    third = state_limits.waiting_question(new("b", "and this?"), [first], {"q", "b.q"}, [first])
    assert other is not None
    assert third is not None
    assert (first.id, other.id, third.id) == ("q", "b.q", "b.q.2")


@pytest.mark.ruling("B6")
def test_a_tree_that_asks_very_much_asks_the_rest_shortened() -> None:
    open_ones = [new(question_id=f"q{n}", prompt="p" * state_limits.PROMPT_LIMIT) for n in range(40)]
    short = state_limits.waiting_question(new(prompt="why? " * 100), [], (), open_ones)
    assert short is not None
    assert len(short.question.prompt) < 2 * state_limits.SHORT_LIMIT
    assert "the whole question is in the job's result" in short.question.prompt


@pytest.mark.ruling("B6")
def test_files_and_findings_have_their_share() -> None:
    assert len(state_limits.files(outcome(touched_files=tuple(f"f{n}" for n in range(99))))) == state_limits.FILES_LIMIT
    assert sum(map(size, state_limits.files(outcome(touched_files=("x" * 300,) * 9)))) <= state_limits.FILES_BYTES
    result = outcome(findings="é" * 4_000)
    alone, shared = (size(state_limits.findings(result, legs)) for legs in (1, 64))
    assert shared < state_limits.FINDINGS_BYTES / 32 < alone < state_limits.FINDINGS_BYTES / 8
