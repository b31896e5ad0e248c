"""Numbers and nouns that agree, in every sentence of the product."""

import re

import pytest

from tests.written import ROOT
from workflows.text.plurals import quantity

SPOKEN_BY_THE_SPEC = 'f"delegation batch of {new_jobs} new job(s)"'


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 commits"), (1, "1 commit"), (2, "2 commits"), (1200, "1,200 commits")]
)
def test_a_noun_agrees_with_its_number(number: int, words: str) -> None:
    assert quantity(number, "commit") == words


def test_a_noun_with_a_plural_of_its_own() -> None:
    assert [quantity(number, "branch", "branches") for number in (1, 2)] == ["1 branch", "2 branches"]


def test_no_sentence_leaves_the_number_to_its_reader() -> None:
    """Check that no message has a plural in brackets, such as `file(s)`; one is written so in the spec."""
    product = [path for part in ("workflows", "activities", "bridge", "cli") for path in (ROOT / part).rglob("*")]
    texts = {path: path.read_text() for path in product if path.suffix in {".py", ".html"}}
    in_brackets = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path, text in texts.items()
        for line in text.splitlines()
        if re.search(r"[a-z]{2}\((e?s)\)(?!:)", line) and SPOKEN_BY_THE_SPEC not in line and '"(s) ' not in line
    }
    assert in_brackets == set()
