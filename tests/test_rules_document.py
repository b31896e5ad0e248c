"""Agreement of the rules' text, the table of rules and all citations; documents name existing files and folders."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.documents import leads_nowhere
from tests.rules import TEXTS
from tests.written import ROOT
from workflows.contract.models import FailurePolicy

DOCUMENT = ROOT / "workflows/RULES.md"
SOURCES = ("workflows", "activities", "bridge", "cli", "tests")
READMES = sorted(path.relative_to(ROOT).as_posix() for folder in SOURCES for path in (ROOT / folder).rglob("README.md"))
DOCUMENTS = ["workflows/RULES.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md", "README.md", *READMES]

NUMBER = r"[A-S]\d{1,2}\b"
PARAGRAPH = re.compile(rf"^\*\*({NUMBER}(?:\.\w+)?)\*\* ", re.MULTILINE)
CITED = re.compile(rf"[Rr]ulings? ({NUMBER}(?:(?:,| and| to)\s+{NUMBER})*)|\(({NUMBER}(?:, {NUMBER})*)\)")
NAMED = re.compile(
    r"`((?!service/|refs/)[\w.-]+(?:/[\w.-]+)*(?:\.(?:py|html)|/))`|`((?:workflows|activities|bridge|cli|tests|dev-cluster)/[\w/.-]+)`"
)
"""A file or folder in code: with an ending of ours, or below one of our folders; not a branch (`service/`)."""
DEFINED = re.compile(r"`((?:workflows|activities|bridge|cli)/[\w/]+\.py)` \(((?:`[\w.]+`(?:, )?)+)\)")
"""A file in code, with names of what it defines in parentheses behind it."""


def described() -> list[str]:
    return PARAGRAPH.findall(DOCUMENT.read_text())


def cited(text: str) -> set[str]:
    """Return every rule that a text cites: after the word ruling, or alone in parentheses."""
    return {number for match in CITED.finditer(text) for number in re.findall(NUMBER, match[0])}


def named_files(document: str) -> Iterator[str]:
    for by_ending, by_folder in NAMED.findall((ROOT / document).read_text()):
        yield by_ending or by_folder


@cache
def files() -> frozenset[str]:
    """Return every path with each of its ends: `wire/schemas.py` too, for `bridge/http/wire/schemas.py`."""
    paths = (path for folder in (*SOURCES, "dev-cluster") for path in (ROOT / folder, *(ROOT / folder).rglob("*")))
    parts = {path.relative_to(ROOT).parts for path in paths}
    return frozenset("/".join(path[at:]) for path in parts for at in range(len(path)))


def test_every_rule_of_the_table_has_its_paragraph_and_the_other_way_round() -> None:
    assert sorted(described()) == sorted(rule for rule in TEXTS if ":" not in rule)


def test_every_failure_policy_has_its_rule() -> None:
    text = DOCUMENT.read_text()
    assert [policy for policy in FailurePolicy if f"the failure policy `{policy}`" not in text] == []


def test_every_rule_stands_under_the_heading_of_its_letter_in_order() -> None:
    sections = re.split(r"^## ", DOCUMENT.read_text(), flags=re.MULTILINE)[1:]
    for section in sections:
        rules = PARAGRAPH.findall(section)
        assert rules, section[:40]
        assert {rule[0] for rule in rules} == {section[0]}
        assert rules == sorted(rules, key=lambda rule: (int(rule[1:].split(".")[0]), "." in rule))


def test_every_rule_that_code_or_tests_cite_is_described() -> None:
    known = {rule.partition(".")[0] for rule in described()}
    strange = {
        f"{path.relative_to(ROOT)}: {number}"
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*.py")
        for number in cited(path.read_text()) - known
    }
    assert strange == set()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_documents_name_files_that_exist(document: str) -> None:
    assert {name for name in named_files(document) if name.rstrip("/") not in files()} == set()


@pytest.mark.parametrize("document", [".github/CONTRIBUTING.md", *READMES])
def test_links_of_documents_lead_somewhere(document: str) -> None:
    assert leads_nowhere(ROOT / document) == []


@pytest.mark.parametrize("document", READMES)
def test_the_courses_name_functions_that_their_files_define(document: str) -> None:
    named = [(path, name) for path, names in DEFINED.findall((ROOT / document).read_text()) for name in code(names)]
    assert [(path, name) for path, name in named if name not in definitions(path)] == []


def code(text: str) -> list[str]:
    """Return what a text has between backticks."""
    return re.findall(r"`([\w.]+)`", text)


WRITTEN = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\([^`\n]*\))?`")
"""A name in code, also a dotted one or a call."""
PROSE = re.compile(r'^ *"""[\s\S]*?"""|(?:^|  )# [^\n]*', re.MULTILINE)
"""A docstring or a comment."""
EXAMPLE = "one__2"
INSTALLED = (sys.stdlib_module_names | packages_distributions().keys()) - {*SOURCES}
CODE = (".py", ".html", ".js", ".css")


@cache
def words() -> frozenset[str]:
    """Return every word of the code and its files' names, without comments, docstrings and the examples below."""
    code_files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.suffix in CODE]
    scripts = [path for path in (ROOT / "dev-cluster").iterdir() if path.is_file() and not path.suffix]
    texts = [PROSE.sub("", path.read_text()) for path in (*code_files, *scripts) if path != Path(__file__)]
    return frozenset(re.findall(r"\w+", " ".join([*files(), *texts])))


def prose_of_code() -> Iterator[tuple[str, str]]:
    """Yield the documents about code, and each module's docstring."""
    for document in DOCUMENTS:
        yield document, (ROOT / document).read_text()
    for path in (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text()
        yield str(path.relative_to(ROOT)), text.split('"""', 2)[1] if text.startswith('"""') else ""


def unknown_names(text: str) -> list[str]:
    """Return the names in code that neither the project nor an installed package has."""
    names = [name for name in WRITTEN.findall(text) if name != EXAMPLE and name.partition(".")[0] not in INSTALLED]
    return [name for name in names if not words().issuperset(name.split("."))]


def test_prose_names_what_the_code_has() -> None:
    assert [f"{place}: {name}" for place, text in prose_of_code() for name in unknown_names(text)] == []


def test_a_name_that_the_code_lacks_is_found() -> None:
    text = "`JobRecord`, `signal.alarm(3)`, `workflows.tree.brandished()`, `[worker].slots`, `Brandisher`, `x y`"
    assert unknown_names(text) == ["workflows.tree.brandished", "Brandisher"]


@cache
def definitions(path: str) -> frozenset[str]:
    """Return the functions, classes and methods of a file; methods also as `Class.method`."""
    top = ast.parse((ROOT / path).read_text()).body
    methods = [(node.name, own) for node in top if isinstance(node, ast.ClassDef) for own in names_of(node.body)]
    return frozenset((*names_of(top), *(own for _, own in methods), *(f"{of}.{own}" for of, own in methods)))


def names_of(body: list[ast.stmt]) -> list[str]:
    return [node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]


def test_a_function_that_a_file_lacks_is_found() -> None:
    [(path, names)] = DEFINED.findall("see `workflows/policy/moving.py` (`leaves`, `Move`), `a.py` (b)")
    assert (path, code(names)) == ("workflows/policy/moving.py", ["leaves", "Move"])
    assert "leaves" in definitions(path)
    assert "stays" not in definitions(path)
    assert "HostWatch.check" in definitions("activities/moving.py")


def test_a_file_that_is_missing_is_found() -> None:
    assert {"bridge/http/app.py", "http/app.py", "app.py", "http/wire"} <= files()
    assert "http/gone.py" not in files()
    assert NAMED.findall("`http/gone.py`, `wire/`, `tests/x`, `a.b`, `key`") == [
        ("http/gone.py", ""),
        ("wire/", ""),
        ("", "tests/x"),
    ]


@pytest.mark.parametrize("document", [".github/CONTRIBUTING.md", "workflows/README.md"])
def test_the_maps_name_every_folder_of_the_core(document: str) -> None:
    folders = {path.parent.name for path in (ROOT / "workflows").glob("*/__init__.py")}
    listed = re.findall(r"^\| `(?:workflows/)?(\w+)` \|", (ROOT / document).read_text(), flags=re.MULTILINE)
    assert folders <= set(listed)


def test_citations_are_read_however_they_are_written() -> None:
    text = "the first (rulings C7, I1 to\n    I3); Ruling A12. Until there are no more (D4, F2) and ruling Z9 or (B)"
    assert cited(text) == {"C7", "I1", "I3", "A12", "D4", "F2"}
