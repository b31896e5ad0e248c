"""Output of `service backup`, `restore` and the daemon's verbs: lines, or one JSON document (ruling K6)."""

import json
from pathlib import Path

import pytest

from activities.settings.home import Home
from cli.main import main

pytestmark = pytest.mark.ruling("K6")


def test_a_backup_and_its_return_are_told(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", str(tmp_path / "first")]) == 0
    output = capsys.readouterr().out
    assert "\\n" not in output
    assert output.endswith(
        f"it holds prompts and keys: keep it private\nbring it back: service restore {tmp_path / 'first'}\n"
    )
    assert main(["backup", str(tmp_path / "second"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["home"] == str(home.root)
    for name, more in (("one", []), ("two", ["--json"])):
        monkeypatch.setenv("SERVICE_HOME", str(tmp_path / name))
        assert main(["restore", str(tmp_path / "first"), *more]) == 0
        output = capsys.readouterr().out
        start = f"SERVICE_HOME={tmp_path / name} service daemon start"
        assert json.loads(output) if more else output.endswith(f"\nnext: {start}\n")


def test_the_unit_and_missing_logs_are_told_line_by_line(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["daemon", "install", "--show"], ["daemon", "logs"]):
        assert main(words) == 0
        output = capsys.readouterr().out
        assert "\\n" not in output
        assert output.count("\n") >= 2
