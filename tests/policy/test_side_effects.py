import pytest

from workflows.contract.models import Decision, ServiceResult
from workflows.policy.side_effects import side_effects

BASE = ServiceResult(
    decision=Decision.IMPLEMENTED, summary="s", changes_made=("a.py", {"path": "b.py"}), tests_run=("t1", "t2")
)


def digest(pull_request: int | None = 1, head: str | None = "h", artifact: str | None = "x", **changes: object) -> str:
    result = ServiceResult.model_validate(BASE.model_dump() | changes)
    return side_effects(result, pull_request=pull_request, head_sha=head, artifact_digest=artifact)


@pytest.mark.ruling("H3", "spec:limits.non_progress")
@pytest.mark.parametrize(
    "changes",
    [
        {"decision": "approved"},
        {"changes_made": ("a.py",)},
        {"changes_made": ("a.py", {"path": "c.py"})},
        {"tests_run": ("t1",)},
        {"pull_request": 2},
        {"head": "i"},
        {"artifact": None},
    ],
)
def test_each_verifiable_side_effect_is_progress(changes: dict[str, object]) -> None:
    base = digest()
    assert digest(**changes) != base  # type: ignore[arg-type]


@pytest.mark.ruling("H3", "spec:limits.non_progress")
@pytest.mark.parametrize(
    "changes",
    [
        {"summary": "other words"},
        {"findings": ("more",)},
        {"needs": ("money",)},
        {"changes_made": ({"path": "b.py"}, "a.py")},
        {"tests_run": ("t2", "  t1 ")},
    ],
)
def test_what_a_job_says_of_itself_and_in_which_order_is_none(changes: dict[str, object]) -> None:
    base = digest()
    assert digest(**changes) == base  # type: ignore[arg-type]
