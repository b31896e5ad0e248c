"""`service help`: every page is listed, its links work, and its commands exist (ruling K6)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from activities.settings.home import Home
from cli import manual
from cli.completion import candidates
from cli.drawing import markdown
from cli.invocation.aliases import ALIASES
from cli.main import NOUNS, command_of, leaves, main
from tests.cli.terminal import typed
from tests.documents import commands, leads_nowhere, wrong_in
from tests.written import ROOT

pytestmark = pytest.mark.ruling("K6")

PAGES = sorted(path for path in manual.FOLDER.glob("*.md") if path.name != "README.md")
NAMES = {page.name for page in manual.pages()}


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["help", *words]) == 0
    return capsys.readouterr().out


def test_every_page_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    listed = [page.name for page in manual.pages()]
    assert sorted(listed) == [path.stem for path in PAGES]
    shown = said(capsys)
    assert all(f"\n  {page.name} " in shown and page.says in shown for page in manual.pages())
    assert max(map(len, shown.splitlines())) <= 80
    assert [each["topic"] for each in json.loads(said(capsys, "--json"))["topics"]] == listed


def wide(page: Path) -> list[str]:
    """Return the shown lines that do not fit a terminal, although they could be wrapped."""
    shown = [line for line in markdown.lines(page.read_text(), 80) if len(line) > 80 and not line.startswith("    ")]
    return [line for line in shown if len(line.split()) > 4]


def lost(page: Path) -> list[str]:
    """Return the commands of a page that can't be copied whole from a terminal."""
    fenced = [line for block in page.read_text().split("```")[1::2] for line in block.splitlines()[1:]]
    shown = "\n".join(markdown.lines(page.read_text(), 80))
    return [line for line in fenced if line.split("  # ")[0].strip() not in shown]


def test_each_page_begins_with_its_one_heading() -> None:
    lines = {page.name: page.read_text().splitlines() for page in PAGES}
    assert [name for name, page in lines.items() if not page[0].startswith("# ") or len(page) <= 5] == []


def test_links_lead_somewhere() -> None:
    assert {page.name: faults for page in PAGES if (faults := leads_nowhere(page))} == {}


def test_pages_name_commands_that_exist() -> None:
    named = [(page.name, command) for page in PAGES for command in commands(page.read_text())]
    assert [(page, command) for page, command in named if wrong_in(command)] == []


def test_each_page_is_shown_as_it_is_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    for page in PAGES:
        assert said(capsys, page.stem) == page.read_text()
        assert json.loads(said(capsys, page.stem, "--json")) == {"topic": page.stem, "text": page.read_text()}


def test_each_page_fits_a_terminal() -> None:
    assert {page.name: lines for page in PAGES if (lines := wide(page))} == {}


def test_commands_can_be_copied_whole() -> None:
    assert {page.name: lines for page in PAGES if (lines := lost(page))} == {}


def test_the_table_of_commands_has_every_one() -> None:
    rows = [set(re.findall(r"[a-z-]+", command)) for command in commands(manual.text("commands"))]
    typed = [path for noun in NOUNS for path, leaf in leaves(command_of(noun), noun) if not leaf.hidden]
    assert [path for path in typed if not any(set(path.split()) <= words for words in rows)] == []


def test_a_page_with_the_name_of_a_command_says_how_that_is_typed() -> None:
    for name in NAMES & set(NOUNS):
        assert manual.text(name).endswith(f"\nHow it is typed: `service {name} --help`.\n")


@pytest.mark.parametrize("words", [["job"], ["job", "tree"], ["bridge", "token", "add"]], ids=" ".join)
def test_a_command_s_name_shows_its_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, *words)
    assert main([*words, "--help"]) == 0
    assert shown == capsys.readouterr().out
    document = json.loads(said(capsys, *words, "--json"))
    assert document["command"] == " ".join(words)
    assert document["text"].strip() == shown.strip()


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["bxes"], "service help boxes"),
        (["pipelins"], "service help pipelines"),
        (["jbo"], "service help job"),
        (["job", "tre"], "service help job tree"),
        (["xyzzy"], "service help"),
    ],
)
def test_near_names_are_said(words: list[str], near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", *words]) == 4
    assert capsys.readouterr().err.endswith(f"try: {near}\n")


def test_pages_and_commands_are_completed() -> None:
    def offered(*words: str) -> list[str]:
        return [word for word, _ in candidates(["help", *words])]

    assert set(offered("")) == NAMES | set(NOUNS) | set(ALIASES)
    assert offered("box") == ["boxes"]
    assert offered("job", "tr") == ["tree"]
    assert offered("boxes", "") == []
    assert offered("--j") == ["--json"]


@pytest.mark.parametrize(
    ("environment", "heading"),
    [
        ({"TERM": "xterm"}, "\x1b[1mLimits of a task\x1b[0m\n"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "Limits of a task\n"),
        ({"TERM": "dumb"}, "# Limits of a task\n"),
        ({}, "# Limits of a task\n"),
    ],
    ids=str,
)
def test_on_a_terminal_that_can_headings_are_bold(home: Home, environment: dict[str, str], heading: str) -> None:
    place = {"PATH": os.environ["PATH"], "HOME": str(home.root), "PAGER": "cat", **environment}
    shown = typed(["help", "limits"], environment=place).text
    assert shown.startswith(heading)
    assert ("](" in shown) == heading.startswith("#")


def test_a_table_too_wide_is_wrapped_within_its_columns() -> None:
    table = f"| a | b |\n|---|---|\n| x | {'word ' * 30}|\n| `y\\|z` | w |"
    shown = [line for line in markdown.lines(table, 40) if line]
    assert all(len(line) <= 40 for line in shown)
    assert shown[0].split() == ["a", "b"]
    assert set(shown[1].strip()) == {"─"}
    assert shown[3].startswith("      word")
    assert any(line.startswith(" y|z") for line in shown)


def test_a_remark_behind_a_command_goes_on_below_it() -> None:
    kept = "  key: kept as it is, however long the line may become in the end"
    page = f"```bash\nservice job list  # {'word ' * 12}end\n{kept}\n```\n"
    shown = list(markdown.lines(page, 50))
    assert shown[0].startswith("    service job list  # word word")
    assert shown[1].startswith("                      # word")
    assert all(len(line) <= 50 for line in shown[:3])
    assert f"    {kept}" in shown


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("service job tree JOB --watch", ""),
        ("service job show|tree", ""),
        ("service agent ask|review NAME [--pr N|--issue N] [--wait]", ""),
        ("service job tree JOB --nonsense", "--nonsense"),
        ("service job nonsense", "nonsense"),
        ("service nonsense", "nonsense"),
        ("service --version", ""),
        ("service --nonsense", "--nonsense"),
        ("service help boxes", ""),
        ("service help nonsense", "there is no page and no command 'nonsense'"),
    ],
)
def test_the_look_at_commands_can_fail(command: str, wrong: str) -> None:
    assert wrong_in(command) == wrong


def test_the_list_imports_little() -> None:
    program = (
        "import sys; from cli.main import main; code = main(['help']);"
        "assert not {'sqlalchemy', 'temporalio', 'rich'} & set(sys.modules), 'slow'; sys.exit(code)"
    )
    subprocess.run(
        [sys.executable, "-P", "-c", program], check=True, env={"PYTHONPATH": str(ROOT)}, capture_output=True
    )
