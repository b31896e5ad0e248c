"""The table of rules and the tests that prove them, read from the markers without running anything."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.rules import NOT_YET, RULES, TEXTS
from tests.written import ROOT, keep

TESTS = ROOT / "tests"
HEAD = """\
# Rules and the tests that prove them

Made from `tests/rules.py` and the `ruling` markers of the tests: after a change run `tests/test_rules.py` once with
`RULES=write`.
"""
Marked = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Proof:
    """A rule, and the test, class or module whose marker names it."""

    rule: str
    path: str
    name: str


def proofs(where: str, source: str) -> Iterator[Proof]:
    """Every rule that a module's markers name: on the module, on classes, on functions."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            yield from (Proof(rule, where, "") for rule in _rules(node.value))
    for each in ast.walk(tree):
        if isinstance(each, Marked) and each.name.lower().startswith("test"):
            yield from (Proof(rule, where, each.name) for mark in each.decorator_list for rule in _rules(mark))


def _rules(marker: ast.expr) -> Iterator[str]:
    for node in ast.walk(marker):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.ruling":
            yield from (ast.literal_eval(each) for each in node.args)


def all_proofs() -> list[Proof]:
    paths = sorted(TESTS.rglob("test_*.py"))
    return [proof for path in paths for proof in proofs(path.relative_to(TESTS).as_posix(), path.read_text())]


def table(found: list[Proof]) -> str:
    """One section per group, one row per rule."""
    lines = [HEAD]
    for group, rules in RULES.items():
        lines += [f"\n## {group}\n", "| rule | says | proven by |", "|---|---|---|"]
        lines += [f"| {rule} | {text} | {_cell(rule, found)} |" for rule, text in rules.items()]
    return "\n".join(lines) + "\n"


def _cell(rule: str, found: list[Proof]) -> str:
    if rule in NOT_YET:
        return "not yet"
    by_path: dict[str, list[str]] = {}
    for proof in found:
        if proof.rule == rule:
            by_path.setdefault(proof.path, []).append(proof.name)
    return "<br>".join(
        f"[{path}]({path}): {', '.join(filter(None, names)) or 'all'}" for path, names in by_path.items()
    )


def test_every_rule_is_proven_or_said_not_to_be() -> None:
    assert TEXTS.keys() - {proof.rule for proof in all_proofs()} == NOT_YET


def test_every_marker_names_a_rule() -> None:
    assert [proof for proof in all_proofs() if proof.rule not in TEXTS] == []


def test_no_rule_is_listed_twice() -> None:
    assert sum(len(group) for group in RULES.values()) == len(TEXTS)


def test_the_table_is_up_to_date() -> None:
    keep(TESTS / "RULES.md", table(all_proofs()))


def test_markers_are_read_wherever_they_stand() -> None:
    source = """
pytestmark = [pytest.mark.slow, pytest.mark.ruling("A1", "A2")]

@pytest.mark.ruling("B1")
class TestX:
    @pytest.mark.ruling("B2")
    async def test_y(self): ...

@pytest.mark.ruling("B3")
def no_test(): ...
"""
    found = [(proof.rule, proof.name) for proof in proofs("m.py", source)]
    assert found == [("A1", ""), ("A2", ""), ("B1", "TestX"), ("B2", "test_y")]
