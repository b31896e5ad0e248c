"""Text of agents and people in a comment: nothing in it acts on GitHub, and it still looks unchanged."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.depth import cases
from workflows.text.inert import inert, refers, visible

REFERENCES = [
    "#12",
    "(#12)",
    "fixes #12",
    "closes: acme/shop#12",
    "shop#12",
    "GH-12",
    "gh-12",
    "GH\\-12",
    "&#35;12",
    "&num;12",
    "\\#12",
    "# 1\n#12",
    "https://github.com/acme/shop/issues/12",
    "http://github.example/acme/shop/pull/12#issuecomment-1",
    "HTTPS://GITHUB.COM/acme/shop/Pull/12",
    "https://github.com/acme/shop/discussions/12",
    "[x](https://github.com/acme/shop/issues/12)",
    "[x]( <https://github.com/acme/shop/issues/12> )",
    "<https://github.com/acme/shop/issues/12>",
    "www.github.com/acme/shop/issues/12",
    "![x](https://github.com/acme/shop/issues/12)",
]
MENTIONS = [
    "@jo",
    "a @jo",
    "@acme/ops",
    "&commat;jo",
    "&#64;jo",
    "&#x40;jo",
    "@&#106;o",
    "\\@jo",
    "@\\_jo",
    "@\\-jo",
    "@\u200bjo",
    "@\u2060jo",
]
LIVE = re.compile(r"@[A-Za-z0-9_-]|#[0-9]|(?i:\bgh-[0-9])|https?://[^\s<>]*/(?:issues|pulls?|discussions)/[0-9]")


def shown(text: str) -> str:
    """Return the page's text, entities and escapes resolved, with the linked addresses."""
    texts = []
    for token in MarkdownIt("commonmark").parse(text):
        for child in token.children or ():
            assert child.type not in ("image", "html_inline")
            texts += [child.content, str(child.attrGet("href") or "")]
    return " ".join(texts)


@pytest.mark.ruling("L11")
@pytest.mark.parametrize("text", [*REFERENCES, *MENTIONS])
def test_nobody_is_mentioned_and_no_thread_is_referred_to(text: str) -> None:
    assert not LIVE.search(shown(inert(text)))
    assert not LIVE.search(shown(f"- x: {inert(text)}"))


@pytest.mark.ruling("L11")
@pytest.mark.parametrize(
    "text",
    [
        "a # b",
        "C#",
        "#define",
        "a & b",
        "AT&T; x",
        "right-1",
        "0b3f1c2d4e5f60718293a4b5c6d7e8f901234567",
        "https://example.com/a#b",
        "[x](https://example.com/issues)",
        "grüße \U0001f44d\ufe0f",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert inert(text) == text


@pytest.mark.ruling("L11")
def test_nothing_without_width_comes_through() -> None:
    assert visible("a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u180eh\U000e0041i\u2064j") == "abcdefghij"
    assert visible("a\u202eb\u2066c\x00d") == "a\ufffdb\ufffdc\ufffdd"
    assert inert("/\u200bservice resume") == "/\u200bservice resume"


@pytest.mark.ruling("L11")
def test_addresses_of_threads_are_known() -> None:
    assert refers("https://github.com/a/b/issues/1")
    assert not refers("https://github.com/a/b/commit/0b3f1c2")


PIECES = [
    *REFERENCES,
    *MENTIONS,
    "/service resume retry",
    "\n",
    " ",
    "\r",
    "`",
    "```",
    "<b>",
    "<!--",
    "-->",
    "[",
    "]",
    "(",
]
PIECES += [
    "#",
    "@",
    "&",
    ";",
    "GH-",
    "1",
    "x",
    "![",
    "](",
    "https:",
    "//",
    "/issues/",
    "\u200b",
    "\ufeff",
    "> ",
    "- ",
    "\\",
]


@pytest.mark.ruling("L11")
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=2)))
@settings(max_examples=cases(200, 5_000))
def test_whatever_agents_write_is_harmless(pieces: list[str]) -> None:
    text = inert("".join(pieces))
    assert not LIVE.search(shown(text))
    assert not re.search(r"<[A-Za-z/!?]|!\[|[\u200c\u200d\u2060\ufeff\u202e]", text)
    assert inert(text) == text
