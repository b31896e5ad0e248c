"""Promises of SECURITY.md: each names the tests that attack it, and they carry its rule (ruling K6)."""

import re

import pytest

from tests.written import ROOT

pytestmark = pytest.mark.ruling("K6")
PAGE = (ROOT / ".github/SECURITY.md").read_text()
PROMISE = re.compile(r"^\| (.+) \| ([NQS]\d(?:, [NQS]\d)*) \| (`tests/.+`) \|$", re.MULTILINE)


def promises() -> list[tuple[set[str], list[str]]]:
    return [({*rules.split(", ")}, re.findall(r"`([^`]+)`", tests)) for _, rules, tests in PROMISE.findall(PAGE)]


def test_every_promise_has_tests_and_every_rule_of_trust_a_promise() -> None:
    table = PAGE.split("## What is promised")[1].split("## What is not promised")[0]
    assert len(promises()) == sum(line.startswith("| ") for line in table.splitlines()) - 1
    named = set().union(*(rules for rules, _ in promises()))
    assert {rule for rule in named if rule.startswith("N")} == {f"N{number}" for number in range(1, 9)}


def test_the_tests_are_there_and_name_the_rule_they_attack() -> None:
    for rules, tests in promises():
        texts = {test: (ROOT / test).read_text() for test in tests if (ROOT / test).is_file()}
        assert texts.keys() == {*tests}
        marked = {rule for text in texts.values() for rule in rules if re.search(rf'ruling\([^)]*"{rule}["\.]', text)}
        assert marked == rules, tests
