"""What the matrix holds against the marks of agents: bounds, and the words of a page."""

import pytest

from tests.chaos import checks
from tests.chaos.play import Look
from tests.chaos.stack import BUDGET, Mark
from workflows.model.states import JobState

ROOT, JOB = "job-aaaaaaaaaaaa", "job-aaaaaaaaaaaa.1"


def mark(word: str, at: float, job: str = JOB) -> Mark:
    return Mark(word, job, 1, "one", 1, at)


def look(state: JobState, at: float, *, calm: bool = True) -> Look:
    return Look(at, at + 1, calm, {(JOB, 1): state})


def test_one_attempt_more_than_the_bound_is_seen() -> None:
    marks = [mark("begin", 1.0, f"{ROOT}.{number}") for number in range(1, BUDGET + 1)]
    assert not list(checks.over_budget(ROOT, [], [mark("begin", 1.0, ROOT), *marks]))
    assert list(checks.over_budget(ROOT, [], [*marks, mark("begin", 1.0, f"{ROOT}.{BUDGET + 1}")]))


@pytest.mark.parametrize(
    ("seen", "is_wrong"),
    [
        (look(JobState.SUCCEEDED, 15.0), True),
        (look(JobState.SUCCEEDED, 21.0), False),
        (look(JobState.SKIPPED, 5.0), False),  # a retry has it wait again, as the attempt that it was
        (look(JobState.QUEUED, 11.0), False),
        (look(JobState.QUEUED, 11.0 + checks.SOON), True),
        (look(JobState.RUNNING, 21.0), False),
        (look(JobState.RUNNING, 21.0 + checks.SOON), True),
        (look(JobState.RUNNING, 21.0 + checks.SOON, calm=False), False),
    ],
)
def test_a_word_that_is_not_true_of_an_agent_is_seen(seen: Look, is_wrong: bool) -> None:
    marks = [mark("begin", 10.0), mark("end", 20.0)]
    assert bool(list(checks.shown_wrongly([seen], marks))) is is_wrong
