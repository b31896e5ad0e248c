"""A home that was open, or whose agents have boxes: each file has restrictive permissions of its own (ruling N8)."""

import stat
from pathlib import Path

import pytest

from tests.e2e.conftest import Installed
from tests.e2e.lived_in import PIPELINE, check_its_files

pytestmark = [pytest.mark.long, pytest.mark.ruling("N8")]


def test_every_file_of_a_home_with_boxes_is_closed_by_itself(installed: Installed, tmp_path: Path) -> None:
    (installed.home / "config.toml").write_text("")
    installed("daemon", "start")
    check_its_files(installed, tmp_path)


@pytest.mark.ruling("N1")
def test_a_home_that_was_open_has_new_secrets_and_its_schedules_go_on(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(f"{PIPELINE}schedule: {{interval: 1m}}\n")
    installed("daemon", "start")
    installed("pipeline", "add", str(tmp_path / "p.yaml"))
    home = installed.seen.home
    token, key = home.bridge_token.read_text(), home.seal_key.read_bytes()
    installed("daemon", "stop")
    home.root.chmod(0o755)
    assert installed.json("daemon", "start")
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert home.bridge_token.read_text() != token
    assert home.seal_key.read_bytes() != key
    installed.wait_for(lambda: not home.seal_key_new.exists())
    assert "was open to other accounts" in installed("doctor").stdout
    installed.wait_for(lambda: any(run["state"] == "succeeded" for run in installed.json("pipeline", "runs")["runs"]))
