"""The tests that prove each rule, read from their markers without running them; and which of them run every day."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tests.rules import NOT_YET, RULES
from tests.written import ROOT

TESTS = ROOT / "tests"
RULING, LONG = "pytest.mark.ruling", "pytest.mark.long"
HEAD = """\
# Rules and the tests that prove them

Made from `tests/rules.py` and the `ruling` markers of the tests by `python -m tests.rules`.
"""
Marked = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Proof:
    """A rule, and the test, class or module whose marker names it."""

    rule: str
    path: str
    name: str
    long: bool = False
    """True if `dev-cluster/test` leaves it out."""


def proofs(where: str, source: str) -> Iterator[Proof]:
    """Yield every rule that a module's markers name: on the module, on classes, on functions."""
    tree = ast.parse(source)
    marks = [node.value for node in tree.body if isinstance(node, ast.Assign) and _is_pytestmark(node)]
    all_long = any(map(_is_long, marks))
    yield from (Proof(rule, where, "", all_long) for mark in marks for rule in _rules(mark))
    yield from _below(where, tree, all_long)


def _below(where: str, parent: ast.Module | ast.ClassDef, long: bool) -> Iterator[Proof]:
    for node in parent.body:
        if isinstance(node, Marked) and node.name.lower().startswith("test"):
            its_long = long or any(map(_is_long, node.decorator_list))
            rules = (rule for mark in node.decorator_list for rule in _rules(mark))
            yield from (Proof(rule, where, node.name, its_long) for rule in rules)
            if isinstance(node, ast.ClassDef):
                yield from _below(where, node, its_long)


def _is_pytestmark(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)


def _is_long(mark: ast.expr) -> bool:
    """Return whether the mark makes the whole test long, not just one case of it."""
    marks = mark.elts if isinstance(mark, ast.List) else [mark]
    return any(ast.unparse(part) == LONG for part in marks)


def _rules(mark: ast.expr) -> Iterator[str]:
    for node in ast.walk(mark):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == RULING:
            yield from (ast.literal_eval(argument) for argument in node.args)


@cache
def all_proofs() -> tuple[Proof, ...]:
    paths = sorted(TESTS.rglob("test_*.py"))
    return tuple(proof for path in paths for proof in proofs(path.relative_to(TESTS).as_posix(), path.read_text()))


def table() -> str:
    """Return the table: one section per group, one row per rule."""
    lines, every_proof = [HEAD], all_proofs()
    for group, rules in RULES.items():
        lines += [f"\n## {group}\n", "| rule | says | proven by |", "|---|---|---|"]
        lines += [f"| {rule} | {text} | {_cell(rule, every_proof)} |" for rule, text in rules.items()]
    return "\n".join(lines) + "\n"


def _cell(rule: str, every_proof: Sequence[Proof]) -> str:
    if rule in NOT_YET:
        return "not yet"
    by_path: dict[str, list[str]] = {}
    for proof in every_proof:
        if proof.rule == rule:
            by_path.setdefault(proof.path, []).append(proof.name)
    return "<br>".join(f"{path}: {', '.join(filter(None, names)) or 'all'}" for path, names in by_path.items())
