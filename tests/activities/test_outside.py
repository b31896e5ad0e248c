"""The command that starts a lost tree anew is the one it was started with."""

import pytest

from activities.outside import anew
from tests.tree.simulator import LEAD, delegation, tree_input
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("B3", "engine:outside")


@pytest.mark.parametrize(
    ("start", "command"),
    [
        (None, 'service agent ask NAME "MESSAGE" --repo OWNER/NAME'),
        (tree_input(), 'service agent implement lead "MESSAGE" --repo repo'),
        (tree_input(action="review", pull_request=7), 'service agent review lead "MESSAGE" --repo repo --pr 7'),
        (
            tree_input(worker=LEAD.model_copy(update={"name": "verifier"}), legs=(delegation("a"),)),
            'service orchestrate verifier "GOAL" --repo repo',
        ),
        (tree_input(worker=LEAD.model_copy(update={"ephemeral": True})), "service pipeline run PIPELINE"),
    ],
)
def test_each_kind_of_root(start: TreeInput | None, command: str) -> None:
    assert anew(start) == command
