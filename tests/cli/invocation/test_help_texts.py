"""One look for all help texts, and `--json` for every command."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.drawing.lines import END
from cli.invocation import help_texts
from cli.invocation.aliases import ALIASES
from cli.invocation.faults import tell_misuse
from cli.main import NOUNS, PAGED, PANELS, command_of, leaves, main, root
from tests.cli.terminal import typed

pytestmark = pytest.mark.ruling("K6")

WITHOUT_JSON = {
    **dict.fromkeys(("bridge serve", "daemon run"), "it runs in the foreground, and what it prints is its log"),
    **dict.fromkeys(("completion bash", "completion fish", "completion zsh"), "it prints a script"),
    "completion candidates": "the scripts read its lines",
    "mcp": "it speaks JSON anyway",
    "host answer": "the machine that joins reads its line",
}
BOXES = set("─│┌┐└┘╭╮╰╯")


def every(command: Any, path: str) -> Iterator[str]:
    yield path
    for name, verb in getattr(command, "commands", {}).items():
        yield from every(verb, f"{path} {name}")


COMMANDS = ["", *(path for noun in NOUNS for path in every(command_of(noun), noun))]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def faults(command: str, text: str) -> Iterator[str]:
    """Yield what a command's help text has that none may have."""
    if not text.startswith(f"Usage: {f'service {command}'.strip()} "):
        yield "it does not begin with its usage"
    if max(map(len, text.splitlines()), default=0) > 80:
        yield "it is wider than 80 columns"
    if BOXES & set(text):
        yield "it has boxes"
    if "\x1b" in text:
        yield "it has colours"
    if re.search(r"[a-z]\.\.\.", text):
        yield "a sentence is cut"
    if {"<str>", "<int>", "range>", "{"} & set(text.split()):
        yield "it has types of the library"


def test_each_fits_eighty_columns_and_has_no_boxes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    texts = {}
    for command in COMMANDS:
        assert main([*command.split(), "--help"]) == 0, command
        texts[command] = capsys.readouterr().out
    assert [(command, fault) for command, text in texts.items() for fault in faults(command, text)] == []


def test_a_help_text_can_have_faults() -> None:
    text = f"Commands: \x1b[1m{'x' * 80} │ <int> is cut..."
    assert len([*faults("job", text)]) == 6
    assert [*faults("job", "Usage: service job \n")] == []


def test_a_usage_that_an_error_shows_has_no_look_of_its_own(tmp_path: Path) -> None:
    environment = {"TERM": "xterm", "HOME": str(tmp_path)}
    text = typed(["job", "shw"], environment=environment).text
    assert "usage: service job [OPTIONS] COMMAND" in text
    assert "1b" not in text


def test_headings_are_strong_on_a_terminal_and_nothing_else_is(tmp_path: Path) -> None:
    environment = {"TERM": "xterm", "HOME": str(tmp_path)}
    printed = typed(["job", "show", "--help"], environment=environment)
    lines = printed.text.splitlines()
    assert lines[0].startswith(f"\x1b[1mUsage:{END} service job show")
    assert [line for line in lines[1:] if "\x1b" in line] == [
        f"\x1b[1m{heading}{END}" for heading in ("Arguments:", "Options:", "Example:")
    ]
    for other in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in typed(["job", "show", "--help"], environment=environment | other).text


def test_the_help_where_nothing_was_typed_has_the_same_look(tmp_path: Path) -> None:
    environment = {"TERM": "xterm", "HOME": str(tmp_path)}
    asked = typed(["job", "--help"], environment=environment)
    bare = typed(["job"], environment=environment)
    assert bare.text.rstrip() == asked.text.rstrip()
    assert "\\x1b" not in bare.text


def test_a_help_text_is_told_without_colours_where_there_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"\x1b[1mUsage:{END} service job\n\n\x1b[1mCommands:{END}\n  list"
    assert help_texts.without_colours(text) == "Usage: service job\n\nCommands:\n  list"
    assert tell_misuse.__module__ == "cli.invocation.faults"
    assert main(["job"]) == 2
    assert capsys.readouterr().err.startswith("Usage: service job [OPTIONS]")


def test_every_command_speaks_json_or_says_why_not() -> None:
    without = {
        path
        for noun in NOUNS
        for path, command in leaves(command_of(noun), noun)
        if not any("--json" in option.opts for option in command.params)
    }
    assert without == set(WITHOUT_JSON)


def test_what_is_paged_is_a_command() -> None:
    assert set(COMMANDS) >= PAGED


def test_the_first_help_text_lists_every_noun_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = lines[lines.index("Begin:") :]
    assert [line[:-1] for line in listed if line.endswith(":")] == [*PANELS, "Aliases"]
    assert [line.split()[0] for line in listed if line.startswith("  ")] == [*NOUNS, *ALIASES]
    assert root() is not None


def test_a_large_group_lists_each_verb_once(capsys: pytest.CaptureFixture[str]) -> None:
    for noun in help_texts.VERB_PANELS:
        assert main([noun, "--help"]) == 0
        listed = capsys.readouterr().out.partition("  -h, --help  ")[2]
        named = re.findall(r"(?m)^  (\S+) ", listed)
        assert sorted(named) == sorted(getattr(command_of(noun), "commands", {})), noun
