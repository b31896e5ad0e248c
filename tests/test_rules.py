"""Rules and tests: every rule has a test that proves it every day; every marker names a rule."""

import subprocess
import sys

from tests.proofs import all_proofs, proofs
from tests.rules import NOT_YET, RULES, TEXTS
from tests.written import ROOT


def test_every_rule_is_proven_or_said_not_to_be() -> None:
    assert TEXTS.keys() - {proof.rule for proof in all_proofs()} == NOT_YET


def test_every_rule_is_proven_by_a_test_that_is_not_long() -> None:
    """Ensures that `dev-cluster/test` proves them all."""
    assert TEXTS.keys() - {proof.rule for proof in all_proofs() if not proof.long} == NOT_YET


def test_every_marker_names_a_rule() -> None:
    assert [proof for proof in all_proofs() if proof.rule not in TEXTS] == []


def test_no_rule_is_listed_twice() -> None:
    assert sum(len(group) for group in RULES.values()) == len(TEXTS)


def test_the_table_is_printed() -> None:
    command = [sys.executable, "-m", "tests.rules"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert all(f"| {rule} | {text} | " in printed for rule, text in TEXTS.items())
    assert "temporal/test_kill.py: " in next(line for line in printed.splitlines() if line.startswith("| G2 |"))


def test_markers_are_read_wherever_they_stand() -> None:
    source = """
pytestmark = [pytest.mark.slow, pytest.mark.ruling("A1", "A2")]

@pytest.mark.ruling("B1")
class TestX:
    @pytest.mark.ruling("B2")
    @pytest.mark.long
    async def test_y(self): ...

@pytest.mark.ruling("B3")
def no_test(): ...

@pytest.mark.ruling("B4")
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.long), 2])
def test_z(x): ...
"""
    rows = [(proof.rule, proof.name, proof.long) for proof in proofs("m.py", source)]
    assert rows == [
        ("A1", "", False),
        ("A2", "", False),
        ("B1", "TestX", False),
        ("B2", "test_y", True),
        ("B4", "test_z", False),
    ]
    module = 'pytestmark = [pytest.mark.long, pytest.mark.ruling("A1")]\ndef test_x(): ...\n'
    assert [proof.long for proof in proofs("m.py", module)] == [True]
