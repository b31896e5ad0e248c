"""Screens, comments and events use the words that people read once: none of the replaced ones is in the code."""

import subprocess

import pytest

from tests.written import ROOT
from workflows.contract.models import Decision
from workflows.model.orders import signature
from workflows.policy.decisions import report

REPLACED = (
    "the coordinator decided",
    "decided implemented",
    "Levels ",
    "no bound is set",
    "for who goes on",
    "Leave the others unanswered",
    "All you tick",
    "? a failure",
    "Done lately",
    "wait for somebody",
    "fast-forwarded in your checkout",
    "is not in the line of",
    "even if it is not merged",
    "claims are in the diff",
    "Changed without being claimed",
    "is ended, and is being recorded",
    "works with older ones",
    "MODEL not said",
    "registered repositories, and output",
    "pipe it in",
    "nothing waits for a person",
    'parts = ["waits for',
    'Column("IS"',
    'Column("LEG"',
    '"TREE",',
    "} has begun",
    "cannot ask; it can",
    "preflight failures",
)


def test_no_replaced_words_are_printed() -> None:
    """Search the product's files, templates included."""
    patterns = [part for words in REPLACED for part in ("-e", words)]
    command = ["git", "grep", "-nF", *patterns, "--", "workflows/*.py", "bridge", "cli/*.py", "activities/*.py"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout == ""


@pytest.mark.parametrize("decision", [*Decision, None])
def test_a_decision_is_a_sentence_and_a_label_without_underscores(decision: Decision | None) -> None:
    assert "_" not in report(decision)
    assert decision is None or "_" not in decision.words


def test_an_order_names_its_person_and_place() -> None:
    assert signature("ann", "cli") == "ann, in the terminal"
    assert signature("ann", "dashboard") == "ann, on the page"
    assert signature("ann", "comment") == "ann, on GitHub"
    assert signature("ann", "a new one") == "ann (a new one)"
