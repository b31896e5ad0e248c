"""The state of a job for people: of one that blocked because it asked, whether it was answered."""

import pytest

from tests.rows import ROOT, job, round_
from workflows.model.rounds import RoundEnd
from workflows.model.states import JobState
from workflows.policy.decisions import state_label


@pytest.mark.parametrize(
    ("state", "end", "label"),
    [
        (JobState.BLOCKED, None, "asks you"),
        (JobState.BLOCKED, RoundEnd.ANSWERED, "answered"),
        (JobState.BLOCKED, RoundEnd.EXPIRED, "blocked"),
        (JobState.SUCCEEDED, RoundEnd.ANSWERED, "succeeded"),
    ],
)
def test_a_job_that_asked_is_not_blocked_once_it_is_answered(state: JobState, end: RoundEnd | None, label: str) -> None:
    asked = round_(end=end)
    assert state_label(job(state=state), [asked]) == label
    assert state_label(job(f"{ROOT}.1", state=state), [asked]) == state.value, "another job asked"
