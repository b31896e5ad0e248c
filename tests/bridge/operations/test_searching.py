"""The search language of lists."""

import pytest

from bridge.operations.searching import parse
from workflows.model.errors import UsageError

KEYS = ("state", "repo", "agent")


@pytest.mark.parametrize(
    ("text", "filters", "words"),
    [
        ("", {}, ""),
        ("  raise   the limit ", {}, "raise the limit"),
        ("state:waiting", {"state": "waiting"}, ""),
        ("raise state:waiting repo:acme/shop limit", {"state": "waiting", "repo": "acme/shop"}, "raise limit"),
        ("State:waiting", {"state": "waiting"}, ""),
        ("state:queued state:waiting", {"state": "waiting"}, ""),
        ('agent:"a name with blanks" x', {"agent": "a name with blanks"}, "x"),
        ('"state:waiting"', {}, "state:waiting"),
        ("fix: the limit", {}, "fix: the limit"),
        ("https://example.org/7", {}, "https://example.org/7"),
        (":x 12:30 <script>a:b</script>", {}, ":x 12:30 <script>a:b</script>"),
        ('an "open quote', {}, "an open quote"),
        ("repo:ssh://git@example.org/x", {"repo": "ssh://git@example.org/x"}, ""),
    ],
)
def test_filters_are_told_from_words(text: str, filters: dict[str, str], words: str) -> None:
    assert parse(text, KEYS) == (filters, words)


def test_an_unknown_filter_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        UsageError, match=r"unknown filter 'colour'. Use one of: state, repo, agent; or put it in quotes"
    ):
        parse("red colour:red", KEYS)
    with pytest.raises(UsageError, match='did you mean "agent"'):
        parse("agnet:scout", KEYS)
