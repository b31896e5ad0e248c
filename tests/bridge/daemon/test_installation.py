"""The daemon as a service of the user's service manager."""

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.daemon import installation
from bridge.machine.locks import FileLock
from workflows.model.errors import NotFoundError, RefusedError, UsageError


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))


def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> Path:
    """Install a fake `systemctl` that records its calls."""
    programs, asked = tmp_path / "bin", tmp_path / "asked"
    programs.mkdir()
    for name in ("systemctl", "loginctl"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{asked}\nexit {code}\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return asked


@pytest.mark.parametrize("folder", ["home", 'a home %h $HOME "x"'])
def test_the_unit_is_one_that_systemd_reads(tmp_path: Path, folder: str) -> None:
    wanted = installation.planned(Home(tmp_path / folder), "linux")
    assert "KillMode=process" in wanted.text, "agents at work outlive a stop"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here: apt-get install systemd")
    unit = tmp_path / "checked.service"
    unit.write_text(wanted.text)
    done = subprocess.run(["systemd-analyze", "verify", "--user", unit], capture_output=True, text=True, check=False)
    assert "checked.service" not in done.stdout + done.stderr, done.stderr


def test_it_is_written_and_started_and_taken_away_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = manager(tmp_path, monkeypatch)
    home = Home(tmp_path / "home")
    wanted = installation.planned(home, "linux")
    assert installation.install(home, wanted)
    unit = wanted.path.name
    assert asked.read_text().splitlines() == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable --now {unit}",
        "loginctl enable-linger",
    ]
    assert f"SERVICE_HOME={home.root}" in wanted.path.read_text()
    assert installation.uninstall(wanted)
    assert asked.read_text().splitlines()[-1] == f"systemctl --user disable --now {unit}"
    assert not wanted.path.exists()
    with pytest.raises(NotFoundError):
        installation.uninstall(wanted)


def test_where_no_manager_answers_the_file_is_there_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = manager(tmp_path, monkeypatch, code=1)
    home = Home(tmp_path / "home")
    wanted = installation.planned(home, "linux")
    assert not installation.install(home, wanted)
    assert wanted.path.exists()
    assert len(asked.read_text().splitlines()) == 1, "what comes after a refusal is not tried"


def test_two_homes_have_two_units(tmp_path: Path) -> None:
    names = {installation.planned(Home(tmp_path / name), "linux").path.name for name in (".service", "one", "two")}
    assert len(names) == 3
    assert "delegation-service.service" in names


def test_a_daemon_that_runs_by_hand_is_in_the_way(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    lock = FileLock.take(home.daemon_lock, wait=0)
    assert lock
    wanted = installation.planned(home, "linux")
    with pytest.raises(RefusedError, match="started by hand"):
        installation.install(home, wanted)
    lock.release()
    assert not wanted.path.exists()


def test_launchd_is_told_in_its_own_format(tmp_path: Path) -> None:
    wanted = installation.planned(Home(tmp_path / "home"), "darwin")
    told = plistlib.loads(wanted.text.encode())
    assert told["ProgramArguments"][-2:] == ["daemon", "run"]
    assert told["EnvironmentVariables"]["SERVICE_HOME"] == str(tmp_path / "home")
    assert told["AbandonProcessGroup"] is True


def test_other_systems_are_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be installed on"):
        installation.planned(Home(tmp_path / "home"), "freebsd14")
