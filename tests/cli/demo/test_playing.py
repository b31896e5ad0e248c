"""The demo as a story: its output and its leftovers, however it ends. A script replaces the commands."""

import json
import os
import signal
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from activities.boxes import try_boxes
from activities.boxes.try_boxes import Machine
from cli.demo import stage
from cli.main import main

pytestmark = pytest.mark.ruling("engine:demo")

COMMANDS = """
import json, os, pathlib, signal, sys
words = [each for each in sys.argv[1:] if each != "--json"]
home = pathlib.Path(os.environ["SERVICE_HOME"])
assert not {"TEMPORAL_ADDRESS", "GIT_DIR"} & set(os.environ)
with open(os.environ["TYPED"], "a") as typed:
    typed.write(" ".join(words[:2]) + "\\n")
if " ".join(words[:2]) == os.environ["FAILS"]:
    sys.exit("error: it does not work")
if " ".join(words[:2]) == os.environ["INTERRUPTS"]:
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()
match words:
    case ["daemon", "start"]:
        home.joinpath("logs").mkdir()
        home.joinpath("logs/worker.log").write_text("its last line\\n")
        print(json.dumps({"state": {"ui_url": "http://127.0.0.1:1", "temporal_address": "127.0.0.1:2"}}))
    case ["agent", "ask", *_]: print(json.dumps({"job_id": "job-1"}))
    case ["daemon", "status"]: print(json.dumps({"state": {"ui_url": "http://127.0.0.1:1", "namespace": "service"}}))
    case ["job", "tree", "job-1"]:
        jobs = [{"decision": "implemented", "summary": "It is built."}]
        print(json.dumps({"task": {"state": os.environ["ENDS"], "reason": "who knows"}, "jobs": jobs}))
"""


@pytest.fixture(autouse=True)
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Record the typed commands; temporary folders are made below the test's own."""
    program = tmp_path / "commands.py"
    program.write_text(COMMANDS)
    monkeypatch.setattr(stage, "SERVICE", (sys.executable, str(program)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    for name, value in (("FAILS", ""), ("INTERRUPTS", ""), ("ENDS", "done"), ("TYPED", str(tmp_path / "typed"))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TEMPORAL_ADDRESS", "elsewhere:7233")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nothing"))
    return tmp_path / "typed"


def left(tmp_path: Path) -> list[str]:
    return os.listdir(tmp_path / "tmp")


def test_it_tells_the_story_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: Path) -> None:
    assert main(["demo"]) == 0
    output = capsys.readouterr().out
    assert "implemented: It is built." in output
    assert "    waiting for the server, the worker and the bridge to start …\n" in output
    assert "    waiting for everything to stop …\n" in output
    assert output.endswith("Stopped and removed. To keep it and look around: service demo --keep\n")
    assert left(tmp_path) == []
    typed_before_the_end, last = typed.read_text().splitlines()[:-1], typed.read_text().splitlines()[-1]
    assert last == "daemon stop"
    assert typed_before_the_end == [
        *("daemon start", "repo add", "agent add", "agent add", "agent add"),
        *("agent ask", "job tree", "job tree"),
    ]


def test_what_is_kept_says_how_to_look_at_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: Path) -> None:
    assert main(["demo", "--keep", "--home", str(tmp_path / "a b")]) == 0
    output = capsys.readouterr().out
    assert f"SERVICE_HOME='{tmp_path}/a b' " in output
    assert "job tree job-1\n" in output
    assert "job merge job-1\n" in output
    assert "http://127.0.0.1:1/namespaces/service/workflows" in output
    assert output.endswith(f"daemon stop && rm -rf '{tmp_path}/a b'\n")
    assert (tmp_path / "a b/demo/hello/hello.py").exists()
    assert "daemon stop" not in typed.read_text()


@pytest.mark.ruling("N2")
def test_where_no_box_holds_its_own_scripts_run_without_one(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(try_boxes, "look", lambda _: Machine(bwrap="not allowed"))
    monkeypatch.setattr(try_boxes, "allowing", lambda: "sudo allow it")
    assert main(["demo", "--keep", "--home", str(tmp_path / "kept")]) == 0
    assert "the demo's own scripts run with box none. To have one: sudo allow it\n" in capsys.readouterr().out
    settings = tomllib.loads((tmp_path / "kept/config.toml").read_text())
    assert settings["runtimes"] == {"shell": {"box": "none"}}
    ports = {settings["temporal"]["port"], settings["bridge"]["port"]}
    assert len(ports) == 2, "a later command of this home needs no variables to find its service"


def test_for_programs_it_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done.pop("seconds") >= 0
    assert done == {"state": "done", "job_id": "job-1", "summary": "It is built.", "jobs": 1, "home": None, "next": []}
    assert left(tmp_path) == []


def test_a_demo_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "repo add")
    assert main(["demo"]) == 1
    errors = capsys.readouterr().err
    assert "the end of worker.log:\n    its last line\n" in errors
    assert "error: service repo add ended with exit code 1\n  | error: it does not work\ntry: " in errors
    assert left(tmp_path) == []


def test_without_git_it_says_so_and_begins_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, typed: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["demo"]) == 1
    assert capsys.readouterr().err.endswith("error: there is no git on the PATH\ntry: install git 2.38 or newer\n")
    assert typed.read_text().splitlines() == ["daemon stop"]
    assert left(tmp_path) == []


def test_a_tree_that_ends_otherwise_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDS", "blocked")
    assert main(["demo", "--json"]) == 1
    document = json.loads(capsys.readouterr().err)
    assert (document["code"], "it is blocked: who knows" in document["error"]) == ("demo_failed", True)


@pytest.mark.parametrize("step", ["daemon start", "job tree"])
def test_what_is_interrupted_leaves_nothing(
    step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, typed: Path
) -> None:
    monkeypatch.setenv("INTERRUPTS", step)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["demo"]) == 130
    assert "error: interrupted" in capsys.readouterr().err
    assert left(tmp_path) == []
    assert ("job kill" in typed.read_text()) is (step == "job tree")
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_cannot_be_stopped_is_not_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "daemon stop")
    assert main(["demo"]) == 1
    (home,) = left(tmp_path)
    errors = capsys.readouterr().err
    assert f"{home} stays: " in errors
    assert errors.endswith("daemon stop\n")


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_home_that_holds_something_is_refused_and_left_alone(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir() if kind == "folder" else mine.write_text("mine")
    if kind == "folder":
        (mine / "mine").write_text("mine")
    assert main(["demo", "--home", str(mine)]) == 3
    assert "is there already" in capsys.readouterr().err
    assert mine.exists()
    assert not typed.exists()
