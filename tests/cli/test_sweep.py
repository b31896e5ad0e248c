"""`service repo sweep` with unmerged branches: listed with their cost, and dropped after one question."""

import json
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.operations.service import Service
from cli.main import main
from tests.activities.git.conftest import run_git
from tests.bridge.grown import Grown, grown
from tests.bridge.seeds import ROOT
from tests.cli.seat import seated


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Grown:
    return grown(Service(home), tmp_path)


def branches(tree: Grown) -> list[str]:
    return run_git(tree.repo, "branch", "--format=%(refname:short)", "--list", "service/*").split()


def test_without_a_choice_only_the_cost_is_said(tree: Grown, capsys: pytest.CaptureFixture[str]) -> None:
    before = branches(tree)
    assert main(["repo", "sweep", "--yes"]) == 0
    output = capsys.readouterr().out
    assert f"{len(before)} unmerged branches of 1 task take " in output
    assert "to look at them: service repo sweep --unmerged" in output
    assert branches(tree) == before
    assert main(["gc", "--older-than", "1h"]) == 0
    assert f"{len(before)} unmerged branches of 1 task take " in capsys.readouterr().err


def test_a_choice_is_listed_and_dropped_with_yes(tree: Grown, capsys: pytest.CaptureFixture[str]) -> None:
    before = branches(tree)
    for words in (["--unmerged"], ["--tree", f"{ROOT}.1", "--dry-run"]):
        assert main(["repo", "sweep", *words]) == 0
        out = capsys.readouterr().out
        assert out.splitlines()[1].split()[:2] == [ROOT, "done"]
        assert "nothing was dropped; to drop all that is listed, type it again with --yes" in out
    assert branches(tree) == before
    assert main(["repo", "sweep", "--state", "done", "--yes", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {each["branch"] for each in document["dropped"]} == set(before)
    assert (document["unmerged"][0]["root_job_id"], document["problems"]) == (ROOT, [])
    assert branches(tree) == []
    assert main(["repo", "sweep", "--unmerged"]) == 0
    assert capsys.readouterr().out == "no unmerged branches of tasks that are over\n"


@pytest.mark.parametrize("answer", ["n", "y"])
def test_on_a_terminal_one_question_shows_what_would_go(tree: Grown, answer: str) -> None:
    before = branches(tree)
    with seated(("repo", "sweep", "--unmerged")) as seat:
        seat.until_shown("Drop all of them?")
        assert any(ROOT in line for line in seat.look().shown)
        seat.press(f"{answer}\r")
        seat.until_shown("nothing was dropped" if answer == "n" else "is dropped")
    assert branches(tree) == (before if answer == "n" else [])


def test_a_wrong_choice_is_refused(tree: Grown, capsys: pytest.CaptureFixture[str]) -> None:
    for words, code, says in (
        (["--state", "blocked"], 2, "not dropped; only of done, cut_short, failed, cancelled"),
        (["--older-than", "x"], 2, "--older-than"),
        (["--tree", "job-ffffffffffff"], 4, "no job job-ffffffffffff"),
    ):
        assert main(["repo", "sweep", *words]) == code
        assert says in capsys.readouterr().err
