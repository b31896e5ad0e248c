"""Documents for newcomers: short, with valid links and pictures and existing commands (ruling K6)."""

import re
import tomllib
from pathlib import Path

import pytest

from cli import manual
from tests.documents import DOCUMENTS, commands, leads_nowhere, links, missing_files, wrong_in
from tests.written import ROOT

pytestmark = pytest.mark.ruling("K6")
README = ROOT / "README.md"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert leads_nowhere(document) == []


def test_it_is_short() -> None:
    assert 150 < len(README.read_text().splitlines()) < 300


def test_its_commands_exist() -> None:
    typed = list(commands(README.read_text()))
    assert len(typed) > 30
    assert [command for command in typed if wrong_in(command)] == []


def test_the_first_page_of_the_site_has_existing_commands_and_leads_to_a_page_for_each_task() -> None:
    text = (ROOT / "dev-cluster/site/index.md").read_text()
    assert [command for command in commands(text) if wrong_in(command)] == []
    tasks = {"start", "teams", "questions", "review", "pipelines", "pull-requests", "limits", "recover"}
    assert {f"../../cli/topics/{name}.md" for name in tasks} <= set(links(text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_and_modules_that_are_typed_exist(document: Path) -> None:
    assert missing_files(document.read_text()) == []


def test_it_leads_to_every_page_of_the_manual() -> None:
    assert {f"cli/topics/{page.name}.md" for page in manual.pages()} <= set(links(README.read_text()))


def test_every_picture_is_shown_and_has_words_for_those_who_cannot_see_it() -> None:
    shown = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README.read_text())
    assert {path for _, path in shown} == {
        str(path.relative_to(ROOT)) for path in (ROOT / ".github/pictures").iterdir()
    }
    assert all(len(words) > 20 for words, _ in shown)


def test_the_page_of_the_package_needs_no_repository_around_it() -> None:
    page = ROOT / tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["readme"]
    text = page.read_text()
    assert [link for link in links(text) if not link.startswith("https://")] == []
    assert [command for command in commands(text) if wrong_in(command)] == []


def test_people_come_first() -> None:
    text = README.read_text()
    order = ["pictures/session.svg", "## Set-up", "service init", "## Why not just", "## A tour", "## The manual"]
    assert sorted(order, key=text.index) == order


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n[a](gone.md) [b](#a-page) [c](#no-page) ![d](x.svg) [`e`](page.md#a-page) [f](https://x.y)\n"
    )
    assert leads_nowhere(page) == ["gone.md", "#no-page", "x.svg"]
