"""Values that a process knows to be secret."""

import base64
import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from activities.redaction import known_values
from activities.redaction.known_values import KnownValues, is_telling, of_environment
from activities.redaction.redact import learn, redact_all, redact_begin, redact_end, redact_text
from activities.settings.home import Home
from activities.settings.load import load
from workflows.secrets.redact import MARK, redact

VALUE = "Umbrella 14" + " walks/home"
PLAIN = "kestrel" + "-44-lamp"


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> KnownValues:
    """Start with no known values, and restore them afterwards."""
    values = KnownValues()
    monkeypatch.setattr(known_values, "process", lambda: values)
    monkeypatch.setattr("activities.settings.load.process", lambda: values)
    learn(["something that is" + " learned 1"])  # clears the cache of earlier texts
    return values


@pytest.mark.ruling("N7")
@pytest.mark.parametrize(
    "name", ["ACME_TOKEN", "API_KEY", "APIKEY", "DB_PASSWORD", "PGPASSWORD", "MY_SECRET", "AWS_SECRET_ACCESS_KEY",
             "GOOGLE_CREDENTIALS", "SENTRY_DSN", "BASIC_AUTH", "token", "X_PAT"]
)  # fmt: skip
def test_variables_whose_names_say_so_are_secret(name: str) -> None:
    assert of_environment({name: VALUE}) == [VALUE]


@pytest.mark.ruling("N7")
@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LANG", "MONKEY_BUSINESS", "COMPASS", "TOKENIZERS", "KEYBOARD_LAYOUT"]
)
def test_others_are_not(name: str) -> None:
    assert of_environment({name: VALUE}) == []


@pytest.mark.ruling("N7")
@pytest.mark.parametrize(
    "value", ["short", "development", "user.name", "credential.helper", "/run/agent.sock", "~/.ssh/id", "https://x.example/y",
              "100000", "true", "127.0.0.1", "C:\\keys"]
)  # fmt: skip
def test_words_paths_and_numbers_are_no_secrets(value: str) -> None:
    """Such values occur in most texts."""
    assert not is_telling(value)
    assert not list(KnownValues([value]).find(f"a {value} b"))


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("value", [VALUE, PLAIN, "ö" + "ß1-quite-long"])
def test_a_known_value_is_found_in_every_form(value: str) -> None:
    find, inside = KnownValues([value]).find, f"it is {value}, they say"
    forms = {
        "plain": value,
        "percent": quote(value, safe=""),
        "JSON": json.dumps(value)[1:-1],
        "JSON in JSON": json.dumps(json.dumps(value))[3:-3],
        "base64": base64.b64encode(value.encode()).decode(),
        "base64 of a text": base64.b64encode(inside.encode()).decode(),
        "in colours": f"{value[:6]}\x1b[0m{value[6:]}",
        "with what is not seen": f"{value[:6]}\u200b{value[6:]}",
    }
    for form in forms.values():
        assert redact(f"said {form} and more", find) == f"said {MARK} and more"
    unreadable = base64.b64encode(b"\xff" + value.encode() + b"\xff").decode()
    assert MARK in redact(f"said {unreadable}", find)


@pytest.mark.ruling("N7")
def test_what_the_settings_name_is_secret(process: KnownValues, tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config.write_text(
        '[runtimes.shell]\nenv = ["ACME_PLAIN"]\n[notify]\nwebhook_secret_env = "HOOK"\n[github]\ntoken_env = "GH"\n'
        '[store]\nurl = "postgresql://me:' + PLAIN + '@db/x"\n'
    )
    values = {"ACME_PLAIN": "one-1-plain-value", "HOOK": "two-2-plain-value", "GH": "three-3-plain-value"}
    load(home, values)
    for value in (*values.values(), PLAIN):
        assert redact_text(f"the thing {value}!") == f"the thing {MARK}!"


@pytest.mark.ruling("N7")
def test_the_bridge_s_token_and_the_seal_key_are_secret_also_when_they_are_made_later(
    process: KnownValues, tmp_path: Path
) -> None:
    home = Home(tmp_path)
    load(home, {})
    token, key = "q8-plain_token_of_the_bridge", bytes(range(100, 132))
    assert redact_text(f"it is {token}") == f"it is {token}"
    home.bridge_token.write_text(token)
    (tmp_path / "seal.key").write_bytes(b"\xff" + key[1:])
    assert redact_text(f"it is {token}") == f"it is {MARK}"
    shown = (b"\xff" + key[1:]).hex()
    assert redact_text(f"it is {shown}") == f"it is {MARK}"


@pytest.mark.ruling("N7")
def test_a_token_that_takes_the_place_of_another_is_secret_too(process: KnownValues, tmp_path: Path) -> None:
    home = Home(tmp_path)
    load(home, {})
    home.bridge_token.write_text("q8-the_first-token_of_it")
    assert redact_text("it is q8-the_first-token_of_it") == f"it is {MARK}"
    before, fresh = home.bridge_token.stat(), tmp_path / "fresh"
    fresh.write_text("q9-the_next-token_of_all")
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))  # both within one tick of the file clock
    fresh.replace(home.bridge_token)
    assert redact_text("it is q9-the_next-token_of_all") == f"it is {MARK}"
    assert redact_text("it is q8-the_first-token_of_it") == f"it is {MARK}"


@pytest.mark.ruling("N7")
def test_all_texts_of_a_value_are_redacted_and_the_rest_is_the_same(process: KnownValues) -> None:
    learn([VALUE])
    value = {"a": [VALUE, 1, None, True], VALUE: ("x", {"b": f"is {VALUE}"}), "password": "swordfish"}
    assert redact_all(value) == {
        "a": [MARK, 1, None, True], MARK: ("x", {"b": f"is {MARK}"}), "password": MARK,
    }  # fmt: skip


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("place", range(900, 1200, 5))
def test_a_secret_that_is_cut_is_not_told_in_part(place: int) -> None:
    token = "ghp" + "_" + "a1B2c3D4" * 5
    text = "word " * 400
    whole = text[:place] + token + " " + text
    assert "ghp_" not in redact_begin(whole, 1000)
    assert "ghp_" not in redact_end(whole[::-1].replace(token[::-1], token), 1000)
    assert len(redact_begin(whole, 1000)) == len(redact_end(whole, 1000)) == 1000
    assert redact_begin("short", 1000) == redact_end("short", 1000) == "short"
