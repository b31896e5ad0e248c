"""Comments on a diff, as they are typed (ruling O6)."""

import pytest

from bridge.operations.orders.revising import DiffComment
from cli.branches import comment_of
from workflows.model.errors import UsageError

pytestmark = pytest.mark.ruling("O6")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("src/a.py:12=Use a set.", DiffComment("src/a.py", 12, "Use a set.")),
        ("src/a.py:new:12=a=b:3=c", DiffComment("src/a.py", 12, "a=b:3=c")),
        ("src/a.py:old:7=Why?\nSay it.", DiffComment("src/a.py", 7, "Why?\nSay it.", old=True)),
        ("odd:name=x.py:1=", DiffComment("odd:name=x.py", 1, "")),
    ],
)
def test_a_comment_names_a_line_and_says_something(typed: str, meant: DiffComment) -> None:
    assert comment_of(typed) == meant


@pytest.mark.parametrize("typed", ["", "src/a.py", "src/a.py:12", "src/a.py:x=y", ":1=x", "a:-1=x"])
def test_anything_else_is_refused_with_its_form(typed: str) -> None:
    with pytest.raises(UsageError, match="PATH:LINE=TEXT"):
        comment_of(typed)
