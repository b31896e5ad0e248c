"""Sixty wrong commands: a sentence, the next command, the exit code; for programs as JSON (ruling K6)."""

import json
import shlex
from pathlib import Path

import pytest

from activities.settings.home import Home
from cli.invocation import calling
from cli.invocation.faults import BUG
from cli.main import NOUNS, command_of, help_of, leaves, main
from tests.bridge import seeds
from tests.cli.wrong_inputs import CODES, REFUSED, USAGE, WITHOUT_A_NEXT_COMMAND, WRONG

pytestmark = pytest.mark.ruling("K6")


def speaks_json(words: list[str]) -> bool:
    path = help_of(words).removeprefix("service ").removesuffix(" --help")
    leaf = dict(leaves(command_of(words[0]), words[0])).get(path) if words[0] in NOUNS else None
    return leaf is not None and any("--json" in option.opts for option in leaf.params)


def test_each_wrong_command(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for typed, code, sentence in WRONG:
        check(typed, code, sentence, capsys)


def check(typed: str, code: int, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Type it, and with `--json`."""
    words = shlex.split(typed)
    assert main(words) == code, typed
    captured = capsys.readouterr()
    assert sentence in captured.err, typed
    assert captured.out == ""
    assert not {"Traceback", BUG} & set(captured.err.split("\n"))
    if typed not in WITHOUT_A_NEXT_COMMAND:
        first, *others = captured.err.splitlines()
        assert first.startswith("error: ")
        assert any(line.startswith("try: ") for line in others)

    as_json = main([*words, "--json"])
    captured = capsys.readouterr()
    assert captured.out == ""
    document = json.loads(captured.err)
    assert set(document) == {"error", "code", "hint"}
    if speaks_json(words):
        assert (as_json, document["code"]) == (code, CODES[code])
        assert sentence in document["error"]
    else:
        assert as_json in (code, USAGE)
        assert document["code"] in (CODES[code], "usage")
    assert document["hint"], typed


def test_every_noun_is_among_them() -> None:
    assert len(WRONG) >= 60
    assert {each[0].split()[0] for each in WRONG} >= set(NOUNS)


def test_a_refusal_to_an_agent_is_json_too(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from activities.runs.ancestry import AgentProcess

    monkeypatch.setattr(calling, "agent", lambda: AgentProcess(f"{seeds.ROOT}.1", home.root))
    assert main(["job", "kill", seeds.ROOT, "--json"]) == REFUSED
    document = json.loads(capsys.readouterr().err)
    assert document["code"] == "for_people"
    assert "`service job kill` is for people" in document["error"]
    assert document["hint"].endswith("service result check")


@pytest.mark.parametrize("place", ["a-file", "a-file/below", "/proc/service-home"])
@pytest.mark.parametrize("command", ["job list", "doctor", "daemon status", "config show", "repo list"])
def test_a_home_that_cannot_be_made_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, place: str, command: str
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("SERVICE_HOME", str(tmp_path / place))
    code = main(command.split())
    captured = capsys.readouterr()
    if captured.err:
        assert code == 1
        assert f"error: {tmp_path / place} cannot be the service home: " in captured.err
        assert "try: export SERVICE_HOME=/some/folder" in captured.err
