"""Redaction on a host: tokens of rarer issuers, and long texts, which a helper process searches."""

import pytest

from activities.host import helper_process
from activities.redaction import redact
from activities.redaction.known_values import KnownValues
from activities.redaction.redact import LONG, redact_all, redact_begin, redact_end, redact_text
from tests.secrets.secret_shapes import alnum, url64
from workflows.model.errors import RefusedError

_TOKENS = {
    "Apify": "apify" + "_api_" + alnum(36),
    "Logfire": "pylf" + "_v1_eu_" + alnum(43),
    "Ory": "ory" + "_at_" + url64(43) + "." + url64(43),
    "Firebase": "AAAA" + alnum(7) + ":APA91b" + alnum(134),
}


@pytest.mark.ruling("N7")
def test_tokens_of_issuers_that_a_detector_was_used_for_go() -> None:
    texts = {name: f"use {token} for it" for name, token in _TOKENS.items()}
    assert {name: redact_text(text) for name, text in texts.items()} == dict.fromkeys(texts, "use [redacted] for it")


@pytest.mark.ruling("N7")
def test_they_are_found_where_a_line_is_broken_and_beside_what_is_no_character() -> None:
    token = _TOKENS["Apify"]
    assert token[12:30] not in redact_text(f"\ud800 ünï {token} \udfff")
    assert redact_text(f"\ud800 ünï {token} \udfff") == "\ud800 ünï [redacted] \udfff"
    assert token[:30] not in redact_text(f"\x1b[1m{token[:20]}\x1b[0m{token[20:]}")


@pytest.mark.ruling("N7")
def test_a_text_full_of_tokens_is_looked_through_to_its_end() -> None:
    text = " ".join([_TOKENS["Apify"]] * 2_000)
    assert set(redact_text(text).split()) == {"[redacted]"}


@pytest.mark.ruling("N7")
def test_a_secret_at_a_cut_leaves_no_part_of_itself() -> None:
    """Many secrets before it make the part that is read shorter than what is asked for, so the cut is inside."""
    text = ("ghp" + "_" + alnum(36) + " ") * 200
    for limit in range(1_000, 1_042):
        words = [*redact_begin(text, limit).split(), *redact_end(text, limit).split()]
        assert [word for word in words if word not in "[redacted]"] == []


@pytest.mark.ruling("N7")
def test_a_text_under_a_secret_s_name_goes_whatever_it_looks_like() -> None:
    value = {"password": "wintersun77", "note": "wintersun77", "more": [{"api_key": "a-b-c-d-e-f-1"}]}
    assert redact_all(value) == {
        "password": "[redacted]",
        "note": "wintersun77",
        "more": [{"api_key": "[redacted]"}],
    }


@pytest.mark.ruling("N7")
class TestLongTexts:
    def test_a_helper_searches_them_for_what_this_process_knows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        searched: list[int] = []

        def search(text: str, known: KnownValues) -> list[tuple[int, int]]:
            searched.append(len(text))
            return helper_process.secrets(text, known)

        monkeypatch.setattr(redact, "_apart", search)
        redact.learn(["Plain-but-known-value-77"])
        begin, end = f"{_TOKENS['Apify']} and ", " Plain-but-known-value-77"
        try:
            assert redact_text(f"{begin}{'word ' * LONG}{end}") == f"[redacted] and {'word ' * LONG} [redacted]"
        finally:
            helper_process.close()
        assert len(searched) == 2
        assert min(searched) > LONG

    def test_one_that_takes_too_long_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def search(text: str, known: KnownValues) -> list[tuple[int, int]]:
            raise RefusedError("it took longer than 60 s, and was ended")

        monkeypatch.setattr(redact, "_apart", search)
        text = f"{_TOKENS['Apify']} {'word ' * LONG}"
        assert redact_text(text) == redact.LEFT_OUT.format(len(text), "it took longer than 60 s, and was ended")
        assert redact_text("short") == "short"

    def test_also_part_of_a_file_and_a_file_are_searched_apart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        searched: list[int] = []

        def search(text: str, known: KnownValues) -> list[tuple[int, int]]:
            searched.append(len(text))
            if "slow" in text:
                raise RefusedError("it took longer than 60 s, and was ended")
            return redact.spans(text, known)

        monkeypatch.setattr(redact, "_apart", search)
        text = f"{_TOKENS['Apify']} {'word ' * (LONG // 5)}"
        assert redact.redact_between("a ", text, " b") == text.replace(_TOKENS["Apify"], "[redacted]")
        assert redact.secrets_of(text) == {_TOKENS["Apify"]}
        assert redact.redact_between("slow ", text, "").startswith("[left out: ")
        assert min(searched) > LONG
