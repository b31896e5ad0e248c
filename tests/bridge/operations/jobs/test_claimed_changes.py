"""The sentence on what a job really changed, beside what it claims."""

import pytest

from bridge.operations.jobs.claimed_changes import in_sum
from workflows.policy.observation import Touched, observe

pytestmark = pytest.mark.ruling("I4", "spec:result.observation")


def summed_up(claims: tuple[str, ...], *files: str) -> str:
    return in_sum(observe(claims, Touched(files=files)).model_dump(mode="json"))


def test_a_job_that_changed_nothing_is_told_as_such() -> None:
    assert summed_up(()) == "it changed nothing"
    assert summed_up(("src/a.py: raised",)) == "it changed nothing, whatever it claims"


def test_claims_are_counted_where_something_changed() -> None:
    raised = ("src/a.py: raised",)
    assert summed_up(raised, "src/a.py") == "the report matches the diff"
    assert summed_up(raised, "src/a.py", "b.py") == "the report matches the diff; 1 more file changed"
    assert summed_up(raised, "b.py", "c.py") == (
        "the diff shows 0 of 1 reported change; 1 reported file did not change; 2 more files changed"
    )
    assert summed_up((), "b.py") == "the report names no change; 1 more file changed"
