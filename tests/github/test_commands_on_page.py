"""Only lines that the page shows as the writer's words count: checked with GitHub's own markdown library."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import cases
from tests.github.page import words_on_page
from workflows.github.commands import commands_in

PIECES = [
    "/service status",
    "/service status\n",
    "/service kill",
    "\n",
    "\n\n",
    "\r\n",
    " ",
    "    ",
    "\t",
    "> ",
    "- ",
    "1. ",
]
PIECES += [
    "```",
    "````",
    "~~~",
    "`",
    "``",
    "<!--",
    "-->",
    "<pre>",
    "</pre>",
    "<details>",
    "</details>",
    "<code>",
    "</code>",
]
PIECES += [
    "<del>",
    "</del>",
    "<b>",
    "</b>",
    "<div>",
    "# ",
    "---",
    "===",
    "|",
    "|-|",
    "~~",
    "*",
    "**",
    "_",
    "[",
    "](",
    "x ",
]
PIECES += ["[a]: ", "[x]:\n", "\\", "<", "&", '"', "<?", "?>", "<!A", "<script>", "</script>", '<a href="', '">']


def test_the_page_is_read_as_it_is_seen() -> None:
    assert (
        words_on_page("/service a\n\nx\n/service b\n\n> /service c\n\n`/service d`\n\n    /service e", "/service") == 2
    )


@pytest.mark.ruling("L4", "F7")
@given(st.lists(st.sampled_from(PIECES), max_size=14))
@settings(max_examples=cases(300, 4_000))
def test_what_counts_is_seen_as_the_writers_own_words(pieces: list[str]) -> None:
    body = "".join(pieces)
    assert len(commands_in(body)) <= words_on_page(body, "/service")
