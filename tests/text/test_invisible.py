"""Invisible characters are shown, and text in any script stays readable."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.text.invisible import PREFIX, in_json, one_line, prefix_lines, visible, without_invisible

pytestmark = pytest.mark.ruling("N6")

HIDDEN = {
    "OSC 8": ("\x1b]8;;http://x\x07", r"\x1b]8;;http://x\x07"),
    "OSC 52": ("\x1b]52;c;eA==\x1b\\", r"\x1b]52;c;eA==\x1b" + "\\"),
    "C1": ("\x9b31m\x85\x9d", r"\x9b31m\x85\x9d"),
    "DEL": ("\x7f", r"\x7f"),
    "back": ("a\bb\rc", r"a\x08b\rc"),
    "direction": ("\u061c\u200e\u200f\u202a\u202e\u2066\u2069", r"\u061c\u200e\u200f\u202a\u202e\u2066\u2069"),
    "tags": ("\U000e0041\U000e007f", r"\U000e0041\U000e007f"),
    "selectors": ("x\ufe00\ufe0f\U000e0100", r"x\ufe00\ufe0f\U000e0100"),
    "two on an emoji": ("😀\ufe0f\ufe0f", "😀\ufe0f" + r"\ufe0f"),
    "no width": ("\u200b\u200c\u200d\u2060\u2064\ufeff\u00ad\u034f", r"\u200b\u200c\u200d\u2060\u2064\ufeff\xad\u034f"),
    "fillers": ("\u115f\u1160\u3164\uffa0\u2800\u17b4", r"\u115f\u1160\u3164\uffa0\u2800\u17b4"),
    "ends of lines": ("a\x0bb\x0cc\u2028d\u2029", r"a\x0bb\x0cc\u2028d\u2029"),
    "private, unassigned, surrogates": ("\ue000\U000f0000\u0378\ufdd0\ud800", r"\ue000\U000f0000\u0378\ufdd0\ud800"),
}  # fmt: skip
SEEN = [
    "日本語、한국어\u3000漢字\U00020000",
    "e\u0301 ñ Å\u0323",
    "שלום עולם",
    "\u0645\u0631\u062d\u0628\u0627 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "क\u094d\u200dष ක\u0dca\u200dර",
    "👩\u200d💻 👨\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 👍🏽 🇩🇪 🏳\ufe0f\u200d🌈",
    "a\u00a0b “q” … ½ ✔ ├─",
    "\U0001fae8",
    "tab\there\nnext",
]


@pytest.mark.parametrize(("text", "shown"), HIDDEN.values(), ids=HIDDEN)
def test_what_is_not_seen_is_shown_as_what_it_is(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert json.loads(in_json(json.dumps([text], ensure_ascii=False))) == [text]


@pytest.mark.parametrize("text", SEEN)
def test_what_people_write_stays_readable(text: str) -> None:
    assert visible(text) == text
    document = json.dumps([text], ensure_ascii=False, indent=2)
    assert in_json(document) == document


def test_a_field_is_one_line_and_lines_of_others_are_marked() -> None:
    assert one_line("a\nerror: b\r\n\tc") == r"a\nerror: b\r\n\tc"
    assert visible("a\r\nb\n") == "a\nb\n"
    assert prefix_lines("a\r\n\nservice job retry x\n") == [f"{PREFIX}a", "  |", f"{PREFIX}service job retry x"]


def test_in_texts_for_github_it_is_marked_or_left_out() -> None:
    assert without_invisible("a\x1bb\u202ec\u200bd\U000e0041e\nf\t") == "a\ufffdb\ufffdcde\nf\t"


@given(st.text())
def test_no_text_has_a_way_through(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    for letter in set(shown) - set("\n\t"):
        newer = 0x1F000 <= ord(letter) <= 0x3FFFD
        assert letter.isprintable() or letter.isspace() or newer or letter in "\u200c\u200d", ascii(letter)
    assert not set("\x85\u2028\u2029\x1c\x1d\x1e\x1f\x0b\x0c\r") & set(shown)
    assert "\n" not in one_line(text)


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_says_the_same(value: object) -> None:
    document = in_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(document) == value
    assert visible(document) == document
    document.encode()
