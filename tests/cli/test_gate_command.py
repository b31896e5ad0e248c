"""`service job gate`: its output, and the exit codes for programs (rulings L10, K6)."""

import json
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.operations.service import Service
from cli.main import main
from tests.bridge.reviewed import V, reviewed
from tests.bridge.seeds import ROOT

pytestmark = pytest.mark.ruling("L10", "K6")


def test_ready_is_a_word_and_zero_and_everything_else_a_reason_and_three(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = reviewed(Service(home), tmp_path)
    tree.merge("a")
    assert main(["job", "gate", ROOT]) == 3
    printed = capsys.readouterr()
    assert [line.count("; next: ") for line in printed.out.splitlines()] == [1, 1]
    assert printed.err == ""
    head = tree.merge("a", "b")
    assert main(["job", "gate", V]) == 0
    assert capsys.readouterr().out == "ready\n"
    assert main(["job", "gate", ROOT, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"state": "passing", "reasons": [], "head": head}
    tree.write(2, v={"decision": "changes_requested"})
    assert main(["job", "gate", ROOT, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["state"] == "failing"


def test_a_pull_request_that_cannot_be_fetched_is_a_reason(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = reviewed(Service(home), tmp_path)
    assert main(["job", "gate", ROOT, "--pr", "7"]) == 3
    assert f"{tree.repo} has no remote to fetch acme/shop from; next: git -C" in capsys.readouterr().out
