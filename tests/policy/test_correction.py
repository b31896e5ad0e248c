"""Long prompts of a set that its coordinator corrects: shown shortened, and put back whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.policy.prompts.correction import SHOWN, restore, shorten

pytestmark = pytest.mark.ruling("C6")
LONG = "Change the limiter in limiter.py. " * 200


def test_a_long_prompt_is_shown_by_its_beginning_and_a_mark_for_the_rest() -> None:
    short = shorten(LONG)
    assert len(short) < SHOWN + 100
    assert LONG.startswith(short[: short.index("[... ")])
    assert "characters more: leave this in place of them, " in short
    assert shorten("x" * (SHOWN + 50)) == "x" * (SHOWN + 50), "the mark would be as long as what it stands for"


@given(st.text(max_size=2_000), st.text(max_size=50))
def test_what_is_left_in_place_becomes_the_whole_prompt_again(prompt: str, more: str) -> None:
    assert restore(shorten(prompt), [prompt]) == prompt
    assert restore(f"{shorten(LONG)} {more}", [prompt, LONG]) == f"{LONG} {more}"


def test_a_text_without_the_mark_is_the_writer_s_own() -> None:
    assert restore("Do it another way.", [LONG]) == "Do it another way."
