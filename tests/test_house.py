"""The structure of the tests: permitted imports, and their place."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.written import ROOT

TESTS = ROOT / "tests"
FILES = sorted(TESTS.rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Yield every module that a file imports at any level."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_test_takes_from_another() -> None:
    """Check that tests don't import tests: shared helpers are in modules of their own, or in a conftest."""
    taken = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in FILES
        for name in imported(path)
        if name.startswith("tests.") and (ROOT / f"{name.replace('.', '/')}.py").name.startswith("test_")
        if (ROOT / f"{name.replace('.', '/')}.py").exists()
    }
    assert taken == set()


def test_tests_stand_where_what_they_test_stands() -> None:
    for ring in ("activities", "bridge"):
        below = {path.parent.relative_to(TESTS) for path in (TESTS / ring).rglob("test_*.py")}
        assert [str(path) for path in below if not (ROOT / path).is_dir()] == []
