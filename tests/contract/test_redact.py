import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.innocent_texts import INNOCENT as MORE_INNOCENT
from tests.contract.redaction_table import INNOCENT, NAMED, TOKENS
from tests.contract.secret_shapes import BY_FORM, SHAPES, Shape
from workflows.contract.models import Action, Decision, Delegation, Entry, HumanQuestion, ServiceResult
from workflows.contract.redact import MARK, redact, redact_result, redact_value
from workflows.contract.secret_tokens import INNER, PREFIXED, SHAPED

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


@pytest.mark.ruling("A12", "N7")
def test_a_result_is_redacted_but_for_what_drives_the_work() -> None:
    token = TOKENS["GitHub personal"]
    entries: tuple[Entry, ...] = (token, {"path": "a.py", "note": [token]})
    leg = Delegation(
        id=token, agent=token, action=Action.ASK, prompt=token, deps=(token, "other"), phase=token, worktree=token,
        fingerprint=token, artifacts=(token,),
    )  # fmt: skip
    result = ServiceResult(
        decision=Decision.APPROVED, summary=token, findings=entries, changes_made=entries, tests_run=entries,
        needs=entries, artifact_body=token, delegations=(leg,),
        human_questions=(HumanQuestion(id=token, prompt=f"is {token} right?", choices=(token, "no")),),
    )  # fmt: skip
    redacted = redact_result(result)
    assert redacted.artifact_body == token
    assert redacted.delegations[0].prompt == token
    rest = redacted.model_dump_json(exclude={"artifact_body": True, "delegations": {"__all__": {"prompt"}}})
    assert token not in rest
    assert redacted.findings == (MARK, {"path": "a.py", "note": [MARK]})


@pytest.mark.ruling("N7")
def test_a_name_that_is_a_secret_stays_one_name() -> None:
    """Legs name each other, and the same name is the same leg."""
    token = TOKENS["GitHub personal"]
    leg = Delegation(id=token, agent="a", action=Action.ASK, prompt="p")
    legs = (leg, *(leg.model_copy(update={"id": name, "deps": (token,)}) for name in ("b", "c")))
    first, *others = redact_result(ServiceResult(decision=Decision.APPROVED, summary="s", delegations=legs)).delegations
    assert {each.deps for each in others} == {(first.id,)}
    assert [each.id for each in others] == ["b", "c"]


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_shape_leaks(shape: Shape) -> None:
    once = redact(shape.text)
    assert not shape.leaks(once)
    assert redact(once) == once
    assert not shape.leaks(redact(f"it said:\n{shape.text}\nand went on"))


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("shape", BY_FORM, ids=lambda shape: shape.name)
@pytest.mark.parametrize("around", AROUND)
def test_a_form_is_found_wherever_it_stands(shape: Shape, around: str) -> None:
    assert not shape.leaks(redact(around.format(shape.text)))


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("text", MORE_INNOCENT)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text
    assert redact(f"it said:\n{text}\nand went on") == f"it said:\n{text}\nand went on"
    assert redact_value({"said": [text]}) == {"said": [text]}


@pytest.mark.ruling("N7")
def test_innocents_beside_secrets_stay() -> None:
    """What is replaced is the secret, and nothing around it."""
    token = TOKENS["GitHub personal"]
    around = [text for text in MORE_INNOCENT if "\n" not in text and len(text) < 200]
    text = "\n\n".join(f"{innocent} | {token}" for innocent in around)
    assert redact(text) == "\n\n".join(f"{innocent} | {MARK}" for innocent in around)


@pytest.mark.ruling("N7")
def test_every_pattern_of_the_table_is_one_and_is_met() -> None:
    for _, prefixes, rest, least in PREFIXED:
        re.compile(f"[{rest}]{{{least},}}")
        assert prefixes.split()
    for pattern in (*(shaped[-1] for shaped in SHAPED), *(inner[-1] for inner in INNER)):
        re.compile(pattern)


@pytest.mark.ruling("N7")
def test_the_tables_are_as_large_as_they_should_be() -> None:
    assert len({shape.text for shape in SHAPES}) >= 250
    assert len(set(MORE_INNOCENT)) >= 150


_HOSTILE = (
    "-----BEGIN PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    "AAAAAAAAAAAAAAAAAAAAAAAA\n",
    "Private-Lines: 3\nAAAAAAAAAAAAAAAAAA\n",
    "-----BEGIN PRIVATE KEY-----\nAa: b\n",
    "token=",
    "token = ",
    'password="',
    "<password>",
    "<password ",
    'name="password" ',
    "machine ",
    "login a ",
    'variable "password" {',
    "define('a_key'",
    '<add key="x_key" ',
    "curl -u a:",
    "mysql -p ",
    "authorization: ",
    "cookie: a=b;",
    "://",
    "://a:",
    "a:b@",
    "?sig=",
    "sk-",
    "sk-abcdefghi1-",
    "ghp_",
    "ghp_aaa1aaa2\n",
    "eyJaaaaaaaaaaa.",
    "SG.aaaaaaaaaaaaaaaaaa.",
    "8Q~",
    "AZDO",
    ".atlasv1.",
    "-us",
    ":AA",
    "\\",
    '\\"',
    "%25",
    "%2525",
    "&amp;",
    "\x1b[",
    "\x1b]",
    "\u200b",
    " ",
    "\n",
    " \n",
    "a",
    "=",
    "-",
    "QUJD",
    "4142",
    "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w\n",
    "the token is ",
    "$2a$",
    "MTaaaaaaaaaaaaaaaaaaaaaaaaa.",
)


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("unit", _HOSTILE)
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    """Eight times the text takes some eight times as long; what is quadratic takes sixty-four times."""

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        return min(_took(text) for _ in range(5))

    assert seconds(16_000) < 30 * max(seconds(2_000), 0.0004)


def _took(text: str) -> float:
    begun = time.process_time()
    redact(text)
    return time.process_time() - begun
