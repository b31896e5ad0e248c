"""Limits on what a tree keeps of its jobs' results; `tests/tree` checks that it keeps no more."""

import pytest

from tests.tree.simulator import delegation
from workflows.contract.models import HumanQuestion
from workflows.contract.size_limits import size
from workflows.model.jobs import JobOutcome
from workflows.model.rounds import Asked
from workflows.model.states import JobState
from workflows.policy import kept


def outcome(**fields: object) -> JobOutcome:
    return JobOutcome.model_validate({"job_id": "job", "state": JobState.SUCCEEDED} | fields)


def new(leg: str = "a", prompt: str = "which?", question_id: str = "q") -> Asked:
    return Asked(id=question_id, question=HumanQuestion(id=question_id, prompt=prompt), job_id="job", leg=leg)


@pytest.mark.ruling("B6")
def test_sets_share_one_bound() -> None:
    many = outcome(delegations=tuple(delegation(f"x{n}", prompt="p" * 1_000) for n in range(70)))
    few = outcome(delegations=(delegation("y"),))
    assert kept.fits(many, [])
    assert not kept.fits(many, [many])
    assert kept.fits(few, [many])
    assert kept.fits(many, [kept.left_out("job", 70), kept.without_set(many)])


@pytest.mark.ruling("F2")
def test_the_same_question_of_a_leg_waits_once_and_a_taken_id_gets_its_legs_name() -> None:
    first = kept.asked(new(), [], (), [])
    assert first is not None
    assert kept.asked(new(), [first], {"q"}, [first]) is None
    other = kept.asked(new("b"), [first], {"q"}, [first])
    third = kept.asked(new("b", "and this?"), [first], {"q", "b.q"}, [first])
    assert other is not None
    assert third is not None
    assert (first.id, other.id, third.id) == ("q", "b.q", "b.q.2")


@pytest.mark.ruling("B6")
def test_a_tree_that_asks_very_much_asks_the_rest_shortened() -> None:
    open_ones = [new(question_id=f"q{n}", prompt="p" * kept.PROMPT_LIMIT) for n in range(40)]
    short = kept.asked(new(prompt="why? " * 100), [], (), open_ones)
    assert short is not None
    assert len(short.question.prompt) < 2 * kept.SHORT_LIMIT
    assert "the whole question is in the job's result" in short.question.prompt


@pytest.mark.ruling("B6")
def test_files_and_findings_have_their_share() -> None:
    assert len(kept.files(outcome(touched_files=tuple(f"f{n}" for n in range(99))))) == kept.FILES_LIMIT
    assert sum(map(size, kept.files(outcome(touched_files=("x" * 300,) * 9)))) <= kept.FILES_BYTES
    found = outcome(findings="é" * 4_000)
    alone, shared = (size(kept.findings(found, legs)) for legs in (1, 64))
    assert shared < kept.FINDINGS_BYTES / 32 < alone < kept.FINDINGS_BYTES / 8
