"""The mutations stay what they are: each breaks a text that stands in its file once."""

import ast

from tests.mutants import MUTANTS, Mutant
from tests.rules import TEXTS
from tests.written import ROOT


def _changes_one_place(mutant: Mutant) -> bool:
    """Return whether the text stands in the file once, and the new one makes it another program."""
    source = (ROOT / mutant.path).read_text()
    if source.count(mutant.old) != 1:
        return False
    return ast.dump(ast.parse(source.replace(mutant.old, mutant.new))) != ast.dump(ast.parse(source))


def _is_there(test: str) -> bool:
    path, *_, name = test.split("::")
    return f"def {name}(" in (ROOT / "tests" / path).read_text()


def test_a_mutation_changes_one_place_of_its_file() -> None:
    assert [str(mutant) for mutant in MUTANTS if not _changes_one_place(mutant)] == []


def test_every_mutation_names_a_rule_or_a_test() -> None:
    assert [mutant for mutant in MUTANTS if not mutant.test and mutant.ruling not in TEXTS] == []
    assert [mutant for mutant in MUTANTS if mutant.test and not _is_there(mutant.test)] == []


def test_at_least_sixty_rules_are_broken_and_sixty_places_outside_of_the_core() -> None:
    assert len({mutant.ruling for mutant in MUTANTS if mutant.ruling}) >= 60
    assert len([mutant for mutant in MUTANTS if mutant.test]) >= 60
