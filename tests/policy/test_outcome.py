import pytest

from workflows.contract.models import Decision
from workflows.model.states import JobState
from workflows.policy.decisions import decision_label, state_of


@pytest.mark.ruling("A11")
def test_blocked_and_failed_are_what_they_say_and_the_rest_succeeded() -> None:
    assert {decision: state_of(decision) for decision in Decision} == dict.fromkeys(Decision, JobState.SUCCEEDED) | {
        Decision.BLOCKED: JobState.BLOCKED,
        Decision.FAILED: JobState.FAILED,
    }


@pytest.mark.ruling("B3")
@pytest.mark.parametrize("word", ["blocked", "failed", "skipped"])
def test_a_decision_that_only_repeats_the_state_is_said_once(word: str) -> None:
    assert decision_label(JobState(word), Decision(word)) == ""
    assert decision_label(JobState.SUCCEEDED, Decision.SKIPPED) == "skipped"
    assert decision_label(JobState.SUCCEEDED, None) == ""
