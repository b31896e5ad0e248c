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
    said = capsys.readouterr()
    assert sentence in said.err, typed
    assert said.out == ""
    assert not {"Traceback", BUG} & set(said.err.split("\n"))
    if typed not in WITHOUT_A_NEXT_COMMAND:
        first, *others = said.err.splitlines()
        assert first.startswith("error: ")
        assert any(line.startswith("try: ") for line in others)

    as_json = main([*words, "--json"])
    said = capsys.readouterr()
    assert said.out == ""
    told = json.loads(said.err)
    assert set(told) == {"error", "code", "hint"}
    if speaks_json(words):
        assert (as_json, told["code"]) == (code, CODES[code])
        assert sentence in told["error"]
    else:
        assert as_json in (code, USAGE)
        assert told["code"] in (CODES[code], "usage")
    assert told["hint"], typed


def test_every_noun_is_among_them() -> None:
    assert len(WRONG) >= 60
    assert {each[0].split()[0] for each in WRONG} >= set(NOUNS)


def test_a_refusal_to_an_agent_is_json_too(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from activities.runs.ancestry import AgentProcess

    monkeypatch.setattr(calling, "agent", lambda: AgentProcess(f"{seeds.ROOT}.1", home.root))
    assert main(["job", "kill", seeds.ROOT, "--json"]) == REFUSED
    told = json.loads(capsys.readouterr().err)
    assert told["code"] == "for_people"
    assert "`service job kill` is for people" in told["error"]
    assert told["hint"].endswith("service result check")


@pytest.mark.parametrize("place", ["a-file", "a-file/below", "/proc/service-home"])
@pytest.mark.parametrize("command", ["job list", "doctor", "daemon status", "config show", "repo list"])
def test_a_home_that_cannot_be_made_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, place: str, command: str
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("SERVICE_HOME", str(tmp_path / place))
    code = main(command.split())
    told = capsys.readouterr()
    if told.err:
        assert code == 1
        assert f"error: {tmp_path / place} cannot be the service home: " in told.err
        assert "try: export SERVICE_HOME=/some/folder" in told.err
