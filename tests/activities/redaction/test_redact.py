"""Tokens that the external detector finds, and harmless text that it leaves alone."""

import pytest

from activities.redaction.redact import redacted
from tests.secrets.innocent_texts import INNOCENT as MORE_INNOCENT
from tests.secrets.redaction_table import INNOCENT
from tests.secrets.secret_shapes import alnum, url64
from workflows.secrets.redact import redact

_KNOWN_TO_IT = {
    "Apify": "apify" + "_api_" + alnum(36),
    "Logfire": "pylf" + "_v1_eu_" + alnum(43),
    "Ory": "ory" + "_at_" + url64(43) + "." + url64(43),
    "Firebase": "AAAA" + alnum(7) + ":APA91b" + alnum(134),
}


@pytest.mark.ruling("N7")
def test_tokens_that_only_the_detector_knows_go_too() -> None:
    texts = {name: f"use {token} for it" for name, token in _KNOWN_TO_IT.items()}
    assert [name for name, text in texts.items() if redact(text) != text] == [], "so this is no test of it"
    assert {name: redacted(text) for name, text in texts.items()} == dict.fromkeys(texts, "use [redacted] for it")


@pytest.mark.ruling("N7")
def test_they_are_found_where_a_line_is_broken_and_beside_what_is_no_character() -> None:
    token = _KNOWN_TO_IT["Apify"]
    assert token[12:30] not in redacted(f"\ud800 ünï {token} \udfff")
    assert redacted(f"\ud800 ünï {token} \udfff") == "\ud800 ünï [redacted] \udfff"
    assert token[:30] not in redacted(f"\x1b[1m{token[:20]}\x1b[0m{token[20:]}")


@pytest.mark.ruling("N7")
def test_harmless_text_passes_the_detector() -> None:
    assert [text for text in (*INNOCENT, *MORE_INNOCENT) if redacted(text) != text] == []


@pytest.mark.ruling("N7")
def test_a_text_full_of_tokens_is_looked_through_to_its_end() -> None:
    text = " ".join([_KNOWN_TO_IT["Apify"]] * 51_000)
    assert set(redacted(text).split()) == {"[redacted]"}
