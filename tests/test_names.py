"""Names: a local is named after what it holds, and a class name has one meaning in the whole product."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.written import ROOT

PACKAGES = ("workflows", "activities", "bridge", "cli", "tests")
EMPTY_WORDS = frozenset({"each", "found", "said", "told"})
BOUND = re.compile(rf"\b(?:{'|'.join(EMPTY_WORDS)})\b *(?:[=:,)]|in |$)", re.MULTILINE)
"""How a binding looks, and some prose: files without it are not parsed."""
ON_ONE_LINE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def empty_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and name of bindings that say nothing. Fields, and comprehensions on one line, may."""
    allowed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ON_ONE_LINE) and node.lineno == node.end_lineno
        for inner in ast.walk(node)
    }
    allowed |= {
        id(field.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        name = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) else ""
        is_bound = isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        if is_bound and name in EMPTY_WORDS and id(node) not in allowed:
            yield getattr(node, "lineno", 0), name


def test_no_value_is_called_each_found_said_or_told() -> None:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    texts = {path.relative_to(ROOT): text for path in paths if BOUND.search(text := path.read_text())}
    bound = ((path, *binding) for path, text in texts.items() for binding in empty_names(ast.parse(text)))
    assert [f"{path}:{line} {name}" for path, line, name in bound] == []


SHARED_CLASSES = {
    "Stream": "one concept of three adapters",
    **dict.fromkeys(("Batch", "Chain"), "the dashboard's outline shows what the core's hold"),
    **dict.fromkeys(("ListedTree", "Round", "Tree"), "the answer over HTTP shows the row or the round"),
    **dict.fromkeys(("Entry", "Gate", "RunRequest"), "names of the published HTTP document"),
}
"""Class names of the product that stand in two files, and why."""


def test_a_class_name_has_one_meaning() -> None:
    counts = Counter(
        name
        for package in PACKAGES[:-1]
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r"^ *class _?(\w+)", path.read_text(), re.MULTILINE)
    )
    assert {name for name, count in counts.items() if count > 1} == SHARED_CLASSES.keys()


def test_an_empty_name_is_found_where_it_is_bound() -> None:
    code = (
        "class Row:\n    said: str\n"
        "def show(told):\n    found = 1\n    for each in told: pass\n    return [each for each in told]\n"
        "x = [\n    said\n    for said in y\n]\n"
    )
    assert sorted(empty_names(ast.parse(code))) == [(3, "told"), (4, "found"), (5, "each"), (9, "said")]
