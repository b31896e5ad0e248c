import pytest

from workflows.contract.models import Decision
from workflows.policy.outcome import state_of
from workflows.tree.jobs import JobState


@pytest.mark.ruling("A11")
def test_blocked_and_failed_are_what_they_say_and_the_rest_succeeded() -> None:
    assert {decision: state_of(decision) for decision in Decision} == dict.fromkeys(Decision, JobState.SUCCEEDED) | {
        Decision.BLOCKED: JobState.BLOCKED,
        Decision.FAILED: JobState.FAILED,
    }
