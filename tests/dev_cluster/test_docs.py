"""The site of the documents: every document is a page, and links lead on the site where they lead on GitHub."""

import importlib.util
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.documents import DOCUMENTS, leads_nowhere
from tests.written import ROOT

pytestmark = pytest.mark.ruling("K6")


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    """Import the script, which is not part of a package."""
    spec = importlib.util.spec_from_file_location("docs", ROOT / "dev-cluster/docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def staged(docs: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    docs.stage(folder)
    return folder


def _named(entries: object) -> Iterator[str]:
    """Yield the pages of a navigation."""
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        for below in entries.values():
            yield from _named(below)
    elif isinstance(entries, list):
        for below in entries:
            yield from _named(below)


def test_every_page_is_in_the_navigation_once(staged: Path) -> None:
    named = list(_named(tomllib.loads((staged / "zensical.toml").read_text())["project"]["nav"]))
    assert sorted(named) == sorted(str(page.relative_to(staged / "pages")) for page in staged.rglob("*.md"))


def test_links_of_every_page_lead_somewhere_on_the_site(staged: Path) -> None:
    wrong = {str(page.relative_to(staged)): leads_nowhere(page) for page in staged.rglob("*.md")}
    assert {page: links for page, links in wrong.items() if links} == {}


def test_every_document_is_a_page_but_that_of_the_package(docs: ModuleType) -> None:
    assert set(docs.places()) >= set(DOCUMENTS) - {ROOT / ".github/package.md"}


def test_a_link_becomes_that_of_the_site_and_code_stays(docs: ModuleType, tmp_path: Path) -> None:
    known = {ROOT / "README.md": "tour.md", ROOT / "cli/topics/boxes.md": "manual/boxes.md"}
    page = tmp_path / "page.md"
    page.write_text("[`a` b](boxes.md#x) [c](https://x.y) [d](script.py) `e\\|f`\n```\n[g](boxes.md)\n```\n")
    (tmp_path / "script.py").touch()
    moved = docs.moved(page, known | {page: "docs/page.md", tmp_path / "boxes.md": "manual/boxes.md"})
    assert moved == "[`a` b](../manual/boxes.md#x) [c](https://x.y) d `e|f`\n```\n[g](boxes.md)\n```\n"


def test_a_link_to_no_page_of_the_site_is_an_error(docs: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"README\.md links .*, which is no page of the site"):
        docs.moved(ROOT / "README.md", {ROOT / "README.md": "tour.md"})


def test_faults_of_a_built_site_are_found(docs: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="h"><a href="a/#there"><a href="#h"><a href="https://x.y"><a href="gone/">'
    )
    (tmp_path / "a/index.html").write_text('<p id="there"><a href="../#nowhere"><script src="https://x.y/z.js">')
    assert list(docs.faults(tmp_path)) == [
        "a/index.html loads https://x.y/z.js",
        "a/index.html links ../#nowhere: no such heading",
        "index.html links gone/: no such page",
    ]
