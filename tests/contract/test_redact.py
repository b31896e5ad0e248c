import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.redaction_table import INNOCENT, NAMED, TOKENS
from workflows.contract.models import Decision, Entry, ServiceResult
from workflows.contract.redact import MARK, redact, redact_result, redact_value

AROUND = ("{}", "a {} b", '"{}"', "x={}", "({})", "{}.", "`{}`,", "[{}]", "\n{}\n", "https://h/?q={}&a=1")


def leaks(secret: str, text: str) -> bool:
    """Whether any telling part of the secret is still there."""
    return any(secret[start : start + 12] in text for start in range(max(1, len(secret) - 11)))


@pytest.mark.ruling("A12")
@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("around", AROUND)
def test_a_known_token_goes_wherever_it_stands(name: str, around: str) -> None:
    text = redact(around.format(TOKENS[name]))
    assert not leaks(TOKENS[name], text)
    assert MARK in text


@pytest.mark.ruling("A12")
@pytest.mark.parametrize(("form", "secret"), NAMED)
def test_a_named_secret_goes_and_its_name_stays(form: str, secret: str) -> None:
    text = redact(f"before\n{form.format(secret)}\nafter")
    assert not leaks(secret, text)
    assert text.startswith("before\n" + form.partition("{}")[0].replace("{{", "{")[:6])
    assert text.endswith("\nafter")
    assert redact(text) == text


@pytest.mark.ruling("A12")
@pytest.mark.parametrize("text", INNOCENT)
def test_innocent_text_comes_out_untouched(text: str) -> None:
    assert redact(text) == text
    assert redact(f"- {text}\n\nnext") == f"- {text}\n\nnext"


def test_the_table_is_a_table() -> None:
    assert len(INNOCENT) >= 60
    assert len(TOKENS) + len(NAMED) >= 60


@pytest.mark.ruling("A12")
@given(st.lists(st.one_of(st.sampled_from([*TOKENS.values(), *INNOCENT]), st.text(max_size=5))).map(" ".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert not any(token in once for token in TOKENS.values())


@pytest.mark.ruling("A12")
def test_values_are_redacted_by_the_name_of_their_member() -> None:
    secret = "plain" + "-words-only"
    value = redact_value(
        {"password": secret, "a": [{"apiKey": secret, "token_count": "15"}], "password_rule": secret, "n": 1}
    )
    assert value == {
        "password": MARK,
        "a": [{"apiKey": MARK, "token_count": "15"}],
        "password_rule": secret,
        "n": 1,
    }


@pytest.mark.ruling("A12")
def test_a_result_is_redacted_where_it_reports_and_nowhere_else() -> None:
    token = TOKENS["GitHub personal"]
    entries: tuple[Entry, ...] = (token, {"path": "a.py", "note": [token]})
    result = ServiceResult(
        decision=Decision.APPROVED, summary=token, findings=entries, changes_made=entries, tests_run=entries,
        needs=entries, artifact_body=token,
    )  # fmt: skip
    redacted = redact_result(result)
    assert redacted.artifact_body == token
    assert token not in redacted.model_dump_json(exclude={"artifact_body"})
    assert redacted.findings == (MARK, {"path": "a.py", "note": [MARK]})
