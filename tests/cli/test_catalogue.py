"""The catalogue of commands for programs: complete, and in agreement with what agents may call (rulings K6, N5)."""

import json
import re
import shlex
from typing import Any

import pytest

from cli import commands, manual
from cli.invocation.examples import EXAMPLES
from cli.invocation.exit_codes import EXIT_CODES
from cli.invocation.permitted import DESTROYS, READS, SERVED, WRITES, effect
from cli.main import NOUNS, command_of, leaves, main, walk

pytestmark = pytest.mark.ruling("K6", "N5")
TYPED = {path: leaf for noun in NOUNS for path, leaf in leaves(command_of(noun), noun) if not leaf.hidden}
CATALOGUE = {each.command: each for each in commands.every()}


def test_it_has_every_command_with_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [each["topic"] for each in printed["topics"]] == [page.name for page in manual.pages()]
    catalogue = {each["command"]: each for each in printed["commands"]}
    assert catalogue.keys() == TYPED.keys()
    for path, leaf in TYPED.items():
        names = [each["name"] for each in catalogue[path]["options"]]
        assert names == [each.opts[0] for each in leaf.params if each.param_type_name == "option"]
        assert catalogue[path]["help"], path


def test_an_option_has_its_type_its_range_and_its_default() -> None:
    limit = next(each for each in CATALOGUE["job list"].options if each.name == "--limit")
    assert (limit.type, limit.value, limit.least, limit.most, limit.default) == ("integer", "N", 1, 1000, 50)
    yes = next(each for each in CATALOGUE["gc"].options if each.name == "--yes")
    assert (yes.type, yes.value, yes.also) == ("flag", "", ("--dry-run",))
    assert [each.name for each in CATALOGUE["bridge token add"].options if each.required] == ["--scope"]
    assert [(each.name, each.repeated) for each in CATALOGUE["job merge"].arguments] == [("JOB...", True)]
    assert CATALOGUE["daemon status"].alias == "status"


def test_agents_destroy_nothing_and_write_proposals_alone() -> None:
    served = {path: effect(path) for path in SERVED}
    assert {path for path, what in served.items() if what != READS} == {"memory propose"}
    assert {each.command for each in CATALOGUE.values() if each.for_agents} == SERVED & TYPED.keys()


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("job drop", DESTROYS),
        ("gc", DESTROYS),
        ("resume", WRITES),
        ("resume abort", DESTROYS),
        ("job merge", WRITES),
        ("agent ask", WRITES),
        ("config show", READS),
        ("job list", READS),
        ("a command of tomorrow", WRITES),
    ],
)
def test_the_most_a_command_does_is_known(path: str, what: str) -> None:
    assert effect(path) == what


def test_exit_codes_are_those_of_the_manual() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|$", manual.text("errors").partition("## As JSON")[0], re.MULTILINE)
    assert {int(code): means for code, means in rows} == EXIT_CODES
    assert CATALOGUE["job gate"].exit_codes[3] == "not ready to be merged"
    assert set(CATALOGUE["agent ask"].exit_codes) == set(EXIT_CODES)


def test_each_example_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    for path, example in EXAMPLES.items():
        assert len(example) <= 76
        program, *words = shlex.split(example)
        command, named = walk(words)
        assert (program, " ".join(named)) == ("service", path)
        command.make_context(path, words[len(named) :], help_option_names=["--help", "-h"])
        assert main([*named, "--help"]) == 0
        assert f"\nExample:\n  {example}\n" in capsys.readouterr().out
