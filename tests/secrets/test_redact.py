import base64
import itertools
import json
import random
import re
import sysconfig
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.secrets.innocent_texts import INNOCENT as MORE_INNOCENT
from tests.secrets.redaction_table import INNOCENT, NAMED, TOKENS
from tests.secrets.said_shapes import SAID
from tests.secrets.secret_shapes import BY_FORM, SHAPES, Shape
from tests.secrets.unseen_shapes import HELD_OUT, LOOKED_AT
from workflows.contract.models import Action, Decision, Delegation, Entry, HumanQuestion, ServiceResult
from workflows.contract.redact_result import redact_result
from workflows.secrets.redact import MARK, redact, redact_value, secrets_in
from workflows.secrets.token_formats import INNER, PREFIXED, SHAPED

AROUND = ("{}", "a {} b", '"{}"', "x={}", "({})", "{}.", "`{}`,", "[{}]", "\n{}\n", "https://h/?q={}&a=1")


def leaks(secret: str, text: str) -> bool:
    """Return whether any revealing part of the secret is left."""
    return any(secret[start : start + 12] in text for start in range(max(1, len(secret) - 11)))


@pytest.mark.ruling("A12")
def test_a_known_token_goes_wherever_it_stands() -> None:
    texts = {(name, around): redact(around.format(TOKENS[name])) for name in TOKENS for around in AROUND}
    assert [key for key, text in texts.items() if leaks(TOKENS[key[0]], text) or MARK not in text] == []


@pytest.mark.ruling("A12")
def test_a_named_secret_goes_and_its_name_stays() -> None:
    def goes(form: str, secret: str) -> bool:
        text = redact(f"before\n{form.format(secret)}\nafter")
        begin = "before\n" + form.partition("{}")[0].replace("{{", "{")[:6]
        return not leaks(secret, text) and text.startswith(begin) and text.endswith("\nafter") and redact(text) == text

    assert [form for form, secret in NAMED if not goes(form, secret)] == []


@pytest.mark.ruling("A12")
def test_innocent_text_comes_out_untouched() -> None:
    texts = [*INNOCENT, *(f"- {text}\n\nnext" for text in INNOCENT)]
    assert _changed(texts) == []


def _changed(texts: Iterable[str]) -> list[tuple[str, str]]:
    return [(text, redacted) for text in texts if (redacted := redact(text)) != text]


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
    """Legs refer to each other by name, so equal names must stay equal."""
    token = TOKENS["GitHub personal"]
    leg = Delegation(id=token, agent="a", action=Action.ASK, prompt="p")
    legs = (leg, *(leg.model_copy(update={"id": name, "deps": (token,)}) for name in ("b", "c")))
    first, *others = redact_result(ServiceResult(decision=Decision.APPROVED, summary="s", delegations=legs)).delegations
    assert {each.deps for each in others} == {(first.id,)}
    assert [each.id for each in others] == ["b", "c"]


def _leaking(shapes: Iterable[Shape]) -> list[str]:
    """Return the shapes of which a part is left, or in which a second pass finds more."""

    def leaks_in(shape: Shape) -> bool:
        once = redact(shape.text)
        around = redact(f"it said:\n{shape.text}\nand went on")
        return shape.leaks(once) or redact(once) != once or shape.leaks(around)

    return [shape.name for shape in shapes if leaks_in(shape)]


@pytest.mark.ruling("N7")
def test_no_shape_leaks() -> None:
    assert _leaking(SHAPES) == []


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("kind", SAID)
def test_no_shape_leaks_as_people_and_programs_write_it(kind: str) -> None:
    assert _leaking(SAID[kind]) == []


@pytest.mark.ruling("N7")
def test_a_form_is_found_wherever_it_stands() -> None:
    def leaks_in(shape: Shape, around: str) -> bool:
        return shape.leaks(redact(around.format(shape.text)))

    assert [(shape.name, around) for shape in BY_FORM for around in AROUND if leaks_in(shape, around)] == []


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("layers", range(1, 6))
def test_a_secret_is_found_below_five_layers_of_escapes(layers: int) -> None:
    text = "pass\\u0077ord: Zq8x41LmKp93"
    for _ in range(layers - 1):
        text = json.dumps(text)[1:-1]
    assert redact(text).endswith(f"ord: {MARK}")


@pytest.mark.ruling("N7")
def test_what_only_looks_like_a_secret_stays() -> None:
    assert _changed([*MORE_INNOCENT, *(f"it said:\n{text}\nand went on" for text in MORE_INNOCENT)]) == []
    assert redact_value({"said": list(MORE_INNOCENT)}) == {"said": list(MORE_INNOCENT)}


ROOT = Path(__file__).parents[2]
STDLIB = Path(sysconfig.get_paths()["stdlib"])


def _per_megabyte(texts: Iterable[str]) -> float:
    count = size = 0
    for text in texts:
        count += len(secrets_in(text))
        size += len(text)
    assert size > 100_000
    return count / size * 1e6


def _texts(folder: Path, *patterns: str, without: tuple[str, ...] = ()) -> list[str]:
    paths = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    return [path.read_text(errors="replace") for path in paths if not {*path.parts} & {*without}]


@pytest.mark.ruling("N7")
def test_ordinary_text_is_left_alone() -> None:
    """Count redactions per megabyte in a part of our sources and of the standard library."""
    ours = [text for name in ("contract", "tree") for text in _texts(ROOT / "workflows" / name, "*.py")]
    assert _per_megabyte([(ROOT / "README.md").read_text(), *ours, *_texts(ROOT / "cli" / "topics", "*.md")]) < 3
    assert _per_megabyte(_texts(STDLIB, "c*.py", "json/*.py", "email/*.py")) < 3


@pytest.mark.long
@pytest.mark.ruling("N7")
def test_all_ordinary_text_is_left_alone() -> None:
    """Covers all texts of the service, with the made-up secrets of its tests; the standard library; ten long
    READMEs.
    """
    tables = {"secret_shapes.py", "said_shapes.py", "redaction_table.py", "innocent_texts.py", "test_redact.py"}
    ours = [
        text
        for name in ("activities", "bridge", "cli", "dev-cluster", "tests", "workflows")
        for text in _texts(ROOT / name, "**/*.py", "**/*.md", "**/*.sh", without=tuple(tables))
    ]
    assert _per_megabyte(ours) < 12
    assert _per_megabyte(_texts(STDLIB, "**/*.py", without=("site-packages", "test", "tests", "idle_test"))) < 3
    readmes = sorted((each.read_text("METADATA") or "" for each in distributions()), key=len)[-10:]
    assert _per_megabyte(readmes) < 12


@pytest.mark.ruling("N7")
def test_innocents_beside_secrets_stay() -> None:
    """Only the secret is replaced, and nothing around it."""
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
    assert len({shape.text for shapes in (SHAPES, *SAID.values()) for shape in shapes}) >= 900
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
    "password:\n",
    "**password** ",
    "| password |",
    "|password|\n",
    "user,password\n",
    "password -> ",
    "password ```\n",
    "password: >-\n",
    "password for a",
    "<b>",
    "password</b>",
    "secret (",
    "passwort: ",
    "mot de passe ",
    "пароль ",
    "密码",
    "seed: abandon ",
    "seed=\n",
    "abandon ",
    "=41",
    "=\n",
    "\\101",
    "\\u{41}",
    "%u0041",
    "0x41, ",
    "41 ",
    "65, ",
    "MFRGGZDF",
    "\uff50",
    '"a" + ',
    "echo abcd | ",
    "<<EOF\n",
    "| sudo -S ",
    "::add-mask::",
    "docker login -p",
    "vault kv put a b=c ",
    'auth=("a"',
    "<input ",
    "identified by ",
    "pa-A1",
    "ghs_1_eyJ",
)


@pytest.mark.ruling("N7")
def test_twice_the_text_takes_twice_as_long() -> None:
    """Quadratic code would take four times as long. A machine that is slower for a while is so for both of a pair."""

    def growth(text: Callable[[int], str]) -> float:
        ratios: list[float] = []
        while len(ratios) < 3 or (median(ratios) >= 2.3 and len(ratios) < 60):
            few, many = _took(text(8_000), 1), _took(text(16_000), 1)
            ratios.append(many / max(few, 0.002))
        return median(ratios)

    def repeated(size: int, begin: str, unit: str) -> str:
        return f"{(begin + unit * (size // len(unit) + 1))[:size]}-"

    texts = (*(("", unit) for unit in _HOSTILE), *itertools.product(("password=", 'token: "'), _VALUES))
    growths = {text: growth(partial(repeated, begin=text[0], unit=text[1])) for text in texts}
    assert {text: ratio for text, ratio in growths.items() if ratio >= 2.3} == {}


_VALUES = ("_a", "a.", "a_", "a->", "a::", "%a", "%", "0.", "a", "1", "a1", "a-", "{a", "\\", "[", "•", "/a/", "~")
"""What the values of names may consist of."""


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("name", ["password=", "token = ", "secret: "])
def test_a_value_that_nearly_is_a_name_takes_no_second(name: str) -> None:
    """Each further `_a` doubled the time: 48 characters took seconds, and 80 would have taken a week."""
    assert _took(f"{name}a{'_a' * 24}-", 3) < 0.5


@pytest.mark.ruling("N7")
@pytest.mark.parametrize(
    "unit",
    [
        "password: ",
        *(
            pytest.param(unit, marks=pytest.mark.long)
            for unit in ("seed: abandon ", "41 42 ", "echo abcd | sudo -S", "sk-abcdefghi1-")
        ),
    ],
)
def test_a_megabyte_of_what_nearly_is_a_secret_takes_no_minute(unit: str) -> None:
    assert _took(unit * (1_000_000 // len(unit)), 1) < 60


@pytest.mark.ruling("N7")
def test_a_long_line_takes_no_longer_than_many_short_ones() -> None:
    """Redact a picture of 22 KB in a `data:` address, which took 0.34 s, and lines of 256 KB and 3 MB."""
    picture = f"![](data:image/png;base64,{base64.b64encode(random.Random(1).randbytes(16_500)).decode()})\nnext"
    assert _took(picture, 3) < 0.2
    assert _took("x" * 256_000 + "\n", 1) < 3
    assert _took("x" * 3_000_000 + "\n", 1) < 30


def _took(text: str, tries: int) -> float:
    times: list[float] = []
    for _ in range(tries):
        begun = time.thread_time()
        redact(text)
        times.append(time.thread_time() - begun)
    return min(times)


@pytest.mark.ruling("N7")
def test_few_of_the_shapes_leak_that_were_written_before_their_rules() -> None:
    """Of 113 shapes in each half 61 and 59 leaked before the rules were written."""

    def leaking(shapes: Iterable[Shape]) -> int:
        return sum(shape.leaks(redact(shape.text)) for shape in shapes)

    assert leaking(LOOKED_AT) <= 10
    assert leaking(HELD_OUT) <= 15
