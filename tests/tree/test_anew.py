"""The command for a fresh start of a tree, which equals its original command."""

import pytest

from tests.tree.simulator import LEAD, delegation, tree_input
from workflows.model.long_texts import Text
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("B3", "engine:outside")


@pytest.mark.parametrize(
    ("start", "command"),
    [
        (tree_input(), "service agent implement lead 'reach the goal' --repo repo"),
        (tree_input(action="review", pull_request=7), "service agent review lead 'reach the goal' --repo repo --pr 7"),
        (
            tree_input(worker=LEAD.model_copy(update={"name": "verifier"}), legs=(delegation("a"),)),
            "service orchestrate verifier 'reach the goal' --repo repo",
        ),
        (tree_input(worker=LEAD.model_copy(update={"ephemeral": True})), "service pipeline run PIPELINE"),
        (tree_input(pull_request=7).model_copy(update={"pipeline": "nightly"}), "service pipeline run nightly --pr 7"),
        (
            tree_input().model_copy(update={"options": "--model large --budget 2"}),
            "service agent implement lead 'reach the goal' --repo repo --model large --budget 2",
        ),
        (
            tree_input(legs=(delegation("a"),)).model_copy(update={"options": "--legs 2"}),
            "service orchestrate lead 'reach the goal' --repo repo --legs 2",
        ),
    ],
)
def test_each_kind_of_root(start: TreeInput, command: str) -> None:
    assert start.anew == command


@pytest.mark.parametrize("prompt", [Text(inline="a\nb"), Text(inline="x" * 201), Text(digest="0" * 64)])
def test_a_message_that_fits_into_no_line_is_piped_in(prompt: Text) -> None:
    piped = "service job prompt job-root --task | service"
    assert tree_input(prompt=prompt).anew == f"{piped} agent implement lead - --repo repo"
    recipe = tree_input(prompt=prompt, legs=(delegation("a"),))
    assert recipe.anew == f"{piped} orchestrate lead - --repo repo"
