"""Mistyped commands, options and names: the right one is suggested, with all that was typed (ruling K6)."""

import shlex
import subprocess
from pathlib import Path

import pytest

from activities.settings.home import Home
from cli.main import main

pytestmark = pytest.mark.ruling("K6")

JOB = "job-0123456789ab"
TYPOS = {
    # groups and verbs
    f"merge {JOB}": f"service job merge {JOB}",
    "job ask boss 'how are you'": "service agent ask boss 'how are you'",
    "jbo list --roots": "service job list --roots",
    "agnet lst": "service agent list",
    "attetnion --watch": "service attention --watch",
    "doctr": "service doctor",
    "pipline run nightly": "service pipeline run nightly",
    "pipeline rnu nightly": "service pipeline run nightly",
    "bridge tokn add ci": "service bridge token add ci",
    "bridge token ad ci": "service bridge token add ci",
    "orchestrate panel hi": "service orchestrate review-panel hi",
    "job resume x retry": "service resume x retry",
    f"job cancel {JOB}": f"service job kill {JOB}",
    "agent create x": "service agent add x",
    "repo rm acme/shop": "service repo remove acme/shop",
    "memory remove mem-3": "service memory retire mem-3",
    "statsu": "service status",
    "ps": "service job list",
    "run nightly": "service pipeline run nightly",
    f"reply {JOB}": f"service resume {JOB}",
    "settings": "service config show",
    # options and their values
    "job list --jsn": "service job list --json",
    "job list --stat=running": "service job list --state=running",
    "ask boss hi --tiemout 1h": "service agent ask boss hi --timeout 1h",
    "job list --state runing": "service job list --state running",
    "job list --jobs --state suceeded": "service job list --jobs --state succeeded",
    "pipeline runs --state blokced": "service pipeline runs --state blocked",
    "agent add x --runtime codx": "service agent add x --runtime codex",
    "agent add x --runtime shell --command cat --session tre": "service agent add x --runtime shell --command cat "
    "--session tree",
    "agent add x --runtime shell --command cat --capabilities reviw": "service agent add x --runtime shell "
    "--command cat --capabilities review",
    # names
    "agent ask bos hi --repo acme/shop": "service agent ask boss hi --repo acme/shop",
    "ask boss hi --repo=acme/shopp": "service agent ask boss hi --repo=acme/shop",
    "agent show Boss": "service agent show boss",
    "job list --agent bos": "service job list --agent boss",
    "job list --repo acme/shopp": "service job list --repo acme/shop",
    "runtime check claud": "service runtime check claude",
    "pipeline run nigthly": "service pipeline run nightly",
    "logs wroker": "service daemon logs worker",
    # the manual
    "help piplines": "service help pipelines",
    "help merge": "service help job merge",
    "help agent aks": "service help agent ask",
}
PIPELINE = "name: nightly\nrepo: acme/shop\nstages:\n  - {id: test, kind: shell, command: 'true'}\n"


@pytest.fixture
def full(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Home:
    """Register a repository, an agent and a pipeline, and begin a log."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "shop")], check=True)
    (tmp_path / "nightly.yaml").write_text(PIPELINE)
    home.logs.mkdir(exist_ok=True)
    (home.logs / "worker.log").write_text("it works\n")
    assert main(["repo", "add", "acme/shop", str(tmp_path / "shop")]) == 0
    assert main(["agent", "add", "boss", "--runtime", "shell", "--command", "cat", "--repo", "acme/shop"]) == 0
    assert main(["pipeline", "add", str(tmp_path / "nightly.yaml")]) == 0, capsys.readouterr().err
    capsys.readouterr()
    return home


def test_the_right_one_is_suggested(full: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for typed, meant in TYPOS.items():
        assert main(shlex.split(typed)) in {2, 4}, typed
        lines = capsys.readouterr().err.splitlines()
        tries = [line.removeprefix("try:").strip() for line in lines if line.startswith(("try: ", "     "))]
        assert meant in tries, typed


def test_a_setting_that_is_unknown_is_answered_with_the_nearest_key(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.config.write_text("[orchestrate]\nmax_delegation_depht = 3\n")
    assert main(["config", "check"]) == 2
    assert 'is not a setting; did you mean "max_delegation_depth"?' in capsys.readouterr().err


@pytest.mark.parametrize("typed", ["xyzzy", "job xyzzy", "agent show xyzzy", "job list --xyzzy"])
def test_where_nothing_is_near_nothing_is_made_up(full: Home, capsys: pytest.CaptureFixture[str], typed: str) -> None:
    assert main(typed.split()) in {2, 4}
    assert "id you mean" not in capsys.readouterr().err


def test_a_long_command_is_not_repeated(full: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "ask", "boss", "a" * 300]) == 2
    assert capsys.readouterr().err.endswith("try: service agent ask --help\n")


def test_jobs_of_an_unknown_repository_are_an_error_that_names_the_known_ones(
    full: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["job", "list", "--repo", "nope"]) == 4
    assert "no repository nope; known: acme/shop" in capsys.readouterr().err
    assert main(["job", "list", "--repo", "acme/shop"]) == 0
