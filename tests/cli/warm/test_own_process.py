"""The commands that are never handed over."""

import os

import pytest

from cli.warm import own_process
from workflows.policy.answers import Verb

pytestmark = pytest.mark.ruling("K7")


@pytest.mark.parametrize(
    ("words", "anywhere", "on_a_terminal"),
    [
        ("", False, False),
        ("--help", False, False),
        ("job list --json", False, False),
        ("daemon status", False, False),
        ("daemon start", True, True),
        ("daemon start --strict-ports", True, True),
        ("daemon stop", True, True),
        ("daemon run", True, True),
        ("start", True, True),
        ("stop --json", True, True),
        ("status", False, False),
        ("tree job-1 --watch", False, True),
        ("bridge serve --addr :0", True, True),
        ("bridge token", False, False),
        ("dashboard", True, True),
        ("dashboard --print", True, True),
        ("init", True, True),
        ("doctor", True, True),
        ("doctor --json", True, True),
        ("runtime check", True, True),
        ("runtime list --json", True, True),
        ("init --yes", True, True),
        ("job tree job-1 --web", True, True),
        ("job tree job-1 --watch", False, True),
        ("job events job-1 --follow", False, True),
        ("daemon logs -f", False, True),
        ("pipeline watch prun-1", False, True),
        ("job diff job-1", False, True),
        ("agent ask scout hello --repo a/b", False, False),
        ("agent ask scout hello --repo a/b --wait", False, True),
        ("agent ask scout - --repo a/b", False, True),
        ("resume job-1", False, True),
        ("resume job-1 --round 3", False, True),
        ("repo sweep --unmerged", False, True),
        ("resume job-1 answer yes", False, False),
        ("resume job-1 retry --file /dev/fd/63", True, True),
        ("result check /proc/self/fd/3", True, True),
    ],
)
def test_what_needs_a_process_of_its_own(
    words: str, anywhere: bool, on_a_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "isatty", lambda number: False)
    assert own_process.is_needed(words.split()) is anywhere
    monkeypatch.setattr(os, "isatty", lambda number: number == 1)
    assert own_process.is_needed(words.split()) is on_a_terminal


def test_a_resume_that_names_a_verb_asks_nothing() -> None:
    """The starter imports nothing of ours, so it has its own copy of the verbs."""
    assert {verb.value for verb in Verb} == own_process._VERBS
