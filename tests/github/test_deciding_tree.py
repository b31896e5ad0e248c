"""The tree that decides about a pull request, and the commits of a merge queue (ruling L10)."""

import pytest

from workflows.contract.models import Action
from workflows.github.merge_gate import deciding_tree, queued_number

pytestmark = pytest.mark.ruling("L10")

ASK, REVIEW, IMPLEMENT = Action.ASK, Action.REVIEW, Action.IMPLEMENT


@pytest.mark.parametrize(
    ("trees", "root"),
    [
        ([], None),
        ([("asked", [ASK])], "asked"),
        ([("asked", [ASK, ASK]), ("reviewed", [ASK, REVIEW])], "reviewed"),
        ([("newer", [IMPLEMENT]), ("older", [REVIEW])], "newer"),
        ([("asked again", [ASK]), ("asked", [ASK])], "asked again"),
        ([("not known yet", []), ("reviewed", [REVIEW])], "reviewed"),
    ],
)
def test_the_newest_tree_decides_that_works_or_reviews(trees: list[tuple[str, list[Action]]], root: str | None) -> None:
    assert deciding_tree(trees) == root


@pytest.mark.parametrize(
    ("ref", "number"),
    [
        (f"refs/heads/gh-readonly-queue/main/pr-12-{'a' * 40}", 12),
        (f"refs/heads/gh-readonly-queue/release/1.x/pr-7-{'0' * 40}", 7),
        ("refs/heads/gh-readonly-queue/main/pr-12", None),
        (f"refs/heads/pr-12-{'a' * 40}", None),
        (f"refs/tags/gh-readonly-queue/main/pr-12-{'a' * 40}", None),
    ],
)
def test_a_merge_queues_commit_is_known_by_its_name(ref: str, number: int | None) -> None:
    assert queued_number(ref) == number
