"""The mutations stay what they are: each breaks a text that stands in its file once."""

import ast

import pytest

from tests.mutants import MUTANTS, Mutant
from tests.rules import TEXTS
from tests.written import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutation_changes_one_place_of_its_file(mutant: Mutant) -> None:
    source = (ROOT / "workflows" / mutant.path).read_text()
    assert source.count(mutant.old) == 1
    assert ast.dump(ast.parse(source.replace(mutant.old, mutant.new))) != ast.dump(ast.parse(source))


def test_every_mutation_names_a_rule() -> None:
    assert [mutant for mutant in MUTANTS if mutant.ruling not in TEXTS] == []


def test_at_least_sixty_rules_are_broken() -> None:
    assert len({mutant.ruling for mutant in MUTANTS}) >= 60
