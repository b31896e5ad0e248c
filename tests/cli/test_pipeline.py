"""Mistakes at `service pipeline`: a sentence, the next thing to type, the exit code of K6; never a traceback."""

import json
import subprocess
from pathlib import Path

import pytest

from activities.pipelines.plan import plan
from activities.pipelines.record_run import definition_and_payload
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import run_rows
from activities.store.artifacts import Artifacts
from activities.store.database import open_store
from activities.store.registry import pipeline_rows
from cli.main import main
from workflows.pipeline.plan import RunState, Trigger
from workflows.pipeline.read import read
from workflows.pipeline.rows import first_rows, skipped_rows
from workflows.pipeline.syntax import Format

pytestmark = pytest.mark.ruling("K6", "K1")

GOOD = "name: p\nrepo: acme/shop\nstages:\n  - {id: a, kind: shell, command: 'true'}\n"


@pytest.fixture
def folder(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Create files a person might have, and one registered pipeline; no server is running."""
    monkeypatch.setenv("SERVICE_TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q", "shop"], check=True)
    files = {
        "good.yaml": GOOD,
        "off.yml": GOOD.replace("name: p", "name: off\nenabled: false"),
        "homeless.yaml": GOOD.replace("name: p\nrepo: acme/shop", "name: homeless"),
        "bad.yaml": GOOD.replace("kind", "knid").replace("repo:", "repos:"),
        "good.txt": GOOD,
        "later.yaml": GOOD.replace("name: p", "name: later\nschedule: {cron: '@daily'}"),
        "zone.toml": 'name = "z"\nstages = [',
    }
    for name, text in files.items():
        Path(name).write_text(text)
    Path("binary.yaml").write_bytes(b"a\xff")
    for words in (["repo", "add", "acme/shop", "shop"], *(["pipeline", "add", f] for f in list(files)[:3])):
        assert main(words) == 0
    capsys.readouterr()
    return tmp_path


MISTAKES: tuple[tuple[str, int, str], ...] = (
    ("add missing.yaml", 4, "missing.yaml cannot be read: No such file"),
    ("add good.txt", 2, "good.txt is neither .yaml, .yml nor .toml"),
    ("add binary.yaml", 2, "binary.yaml is not UTF-8 text: byte 2 does not fit"),
    ("add bad.yaml", 2, 'unknown key "repos"; did you mean "repo"?'),
    ("add bad.yaml", 2, 'unknown key "knid"; did you mean "kind"?'),
    ("add zone.toml", 2, "this is not valid TOML"),
    ("add later.yaml", 5, "Temporal cannot be reached at 127.0.0.1:1"),
    ("show prun-x", 4, "no run prun-x"),
    ("show prun-x --stage a", 4, "no run prun-x"),
    ("show p --attempt 2", 2, "--attempt is of a stage: add --stage ID"),
    ("show q", 4, "no pipeline q; known: homeless, off, p"),
    ("run q", 4, "no pipeline q; known: homeless, off, p"),
    ("run off", 3, "the pipeline off is disabled"),
    ("run homeless", 3, "the pipeline homeless has no repo"),
    ("run p --payload x", 2, "'x' is not KEY=VALUE"),
    ("run p --payload a=1 --payload a=2", 2, "the payload names 'a' twice"),
    ("run p --payload A=1", 2, 'payload key "A" must be 1 to 64 bytes'),
    ("run p", 5, "Temporal cannot be reached"),
    ("watch prun-x", 4, "no run prun-x"),
    ("cancel prun-x", 4, "no run prun-x"),
    ("runs --state runing", 2, 'did you mean "running"?'),
    ("runs --cursor x", 2, "invalid cursor"),
    ("enable q", 4, "no pipeline q"),
    ("disable q", 4, "no pipeline q"),
    ("remove q", 4, "no pipeline q"),
)


def test_a_mistake_is_answered_by_a_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, code, sentence in MISTAKES:
        assert main(["pipeline", *words.split()]) == code, words
        captured = capsys.readouterr()
        assert sentence in captured.err
        assert captured.out == "", words
    assert main(["pipeline", "runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"runs": [], "next_cursor": None}, "nothing half recorded"


def test_what_is_registered_is_listed_shown_switched_and_forgotten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(*words: str) -> str:
        assert main(["pipeline", *words]) == 0
        return capsys.readouterr().out

    assert [each["name"] for each in json.loads(say("list", "--json"))] == ["homeless", "off", "p"]
    assert json.loads(say("show", "p", "--json"))["definition"] == GOOD
    assert "command: 'true'" in say("show", "p")
    say("enable", "off")
    assert json.loads(say("show", "off", "--json"))["enabled"] is True
    say("disable", "off")
    assert "off       acme/shop  no       -" in say("list")
    say("remove", "off")
    assert "off" not in say("list")


@pytest.mark.ruling("L1")
def test_a_run_says_what_it_belongs_to(folder: Path, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    store, artifacts = open_store(home), Artifacts(home.artifacts)
    assert main(["repo", "add", "acme/shop", "shop", "--github", "acme/tool"]) == 0
    asked = {"name": "p", "trigger": Trigger.CLI, "payload": {}}
    for run_id, issue in (("prun-1", None), ("prun-2", 3)):
        start = plan(store, Settings(), artifacts, run_id=run_id, issue=issue, **asked)  # type: ignore[arg-type]
        run_rows.write(store, first_rows(start), definition_and_payload(artifacts, start))
    capsys.readouterr()
    for run_id, words in (("prun-1", ""), ("prun-2", "issue #3 of acme/tool (https://github.com/acme/tool/issues/3)")):
        assert main(["pipeline", "show", run_id]) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("belongs to")]
        assert lines == ([f"belongs to {words}"] if words else [])
    assert main(["pipeline", "show", "prun-2", "--json"]) == 0
    view = json.loads(capsys.readouterr().out)
    assert (view["pull_request"], view["issue"], view["belongs_to"]["what"]) == (None, 3, "issue #3 of acme/tool")
    assert main(["pipeline", "runs"]) == 0
    listed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "issue #3" in listed["prun-2"]
    assert "#" not in listed["prun-1"]


def test_runs_are_shown_and_an_active_one_keeps_its_pipeline(
    folder: Path, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    store, artifacts = open_store(home), Artifacts(home.artifacts)
    for n, state in enumerate(("running", "skipped"), 1):
        start = plan(
            store, Settings(), artifacts, name="p", run_id=f"prun-{n}", trigger=Trigger.CLI, payload={"a": "b"}
        )
        rows = first_rows(start) if state == "running" else skipped_rows(start, "busy")
        run_rows.write(store, rows, definition_and_payload(artifacts, start))
    assert main(["pipeline", "remove", "p"]) == 3
    assert "p has an active run, prun-1" in capsys.readouterr().err
    assert main(["pipeline", "runs", "--limit", "1"]) == 0
    shown = capsys.readouterr().out
    assert "prun-2" in shown
    assert "more: --cursor" in shown
    assert main(["pipeline", "cancel", "prun-2"]) == 3
    assert f"the run prun-2 has ended ({RunState.SKIPPED})" in capsys.readouterr().err
    assert main(["pipeline", "watch", "prun-2"]) == 1
    assert "prun-2  p  skipped: busy" in capsys.readouterr().out
    assert main(["pipeline", "show", "prun-1"]) == 0
    assert "  a pending" in capsys.readouterr().out
    pipeline_rows.put(store, read(GOOD + "# newer\n", Format.YAML), GOOD + "# newer\n", Format.YAML)
    assert main(["pipeline", "show", "prun-1", "--definition"]) == 0
    assert capsys.readouterr().out == GOOD
    assert main(["pipeline", "show", "p", "--definition"]) == 0
    assert capsys.readouterr().out == GOOD + "# newer\n"
    assert main(["pipeline", "show", "prun-1", "--stage", "a"]) == 4
    assert "stage a of prun-1 has not begun (pending)" in capsys.readouterr().err
