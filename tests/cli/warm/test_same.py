"""A handed-over command prints and does what one in a process of its own does."""

import os
from pathlib import Path

import pytest

from tests.cli.warm.conftest import FRESH, ONLY_HANDED, Warm

pytestmark = pytest.mark.ruling("K7")

COMMANDS = [
    "",
    "--help",
    "job --help",
    "agent ask --help",
    "repo list",
    "repo list --json",
    "agent list",
    "agent show scout",
    "agent show scout --json",
    "job list",
    "job list --json",
    "job tree job-nowhere",
    "job show job-nowhere --json",
    "attention",
    "attention --json",
    "memory list",
    "pipeline list",
    "spend --json",
    "config show",
    "daemon status",
    "github status",
    "no-such-noun",
    "job no-such-verb",
    "job list --no-such-option",
    "job list --limit 0",
    "agent ask nobody hi --repo acme/shop",
    "agent ask scout hi --repo acme/x",
    "agent ask scout hi --repo acme/shop",
    "resume job-nowhere",
    "resume job-nowhere retry",
    "repo add shop .",
    "result schema --prompt",
]
FEW = [
    "job list --json",
    "job show x --json",
    "job list --no-such-option --json",
    "agent show nobody",
    "job list --no-such-option",
]


def both(warm: Warm, words: str, given: str = "") -> list[tuple[int, str, str]]:
    parts = words.split()
    done = [warm.type(*parts, given=given), warm.type(*parts, entry=FRESH, given=given)]
    return [(each.returncode, each.stdout, each.stderr) for each in done]


@pytest.mark.parametrize("words", FEW)
def test_few_commands(shared: Warm, words: str) -> None:
    handed, fresh = both(shared, words)
    assert handed == fresh


@pytest.mark.long
@pytest.mark.parametrize("words", COMMANDS)
def test_every_kind_of_command(shared: Warm, words: str) -> None:
    handed, fresh = both(shared, words)
    assert handed == fresh
    assert "Traceback" not in handed[2]


@pytest.mark.long
@pytest.mark.parametrize("given", ["", "no result", '```json\n{"decision": "done", "summary": "ünï"}\n```\n'])
def test_standard_input(shared: Warm, given: str) -> None:
    handed, fresh = both(shared, "result check", given)
    assert handed == fresh


def test_a_file_named_from_the_folder_where_it_is_typed(shared: Warm, tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text("no result")
    there = Warm(shared.home, tmp_path)
    handed, fresh = both(there, "result check answer.json")
    assert handed == fresh
    assert "cannot be read" not in handed[2]


def test_a_reader_that_goes_away_is_no_fault(shared: Warm) -> None:
    outcomes = []
    for entry in (ONLY_HANDED, FRESH):
        reading, writing = os.pipe()
        os.close(reading)
        with shared.begun("job", "--help", entry=entry, stdout=writing) as process:
            os.close(writing)
            _, err = process.communicate("")
        outcomes.append((process.returncode, err))
    assert outcomes[0] == outcomes[1]
