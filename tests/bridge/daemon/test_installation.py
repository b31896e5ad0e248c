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
    wanted = installation.plan(Home(tmp_path / folder), "linux")
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
    wanted = installation.plan(home, "linux")
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
    wanted = installation.plan(home, "linux")
    assert not installation.install(home, wanted)
    assert wanted.path.exists()
    assert len(asked.read_text().splitlines()) == 1, "what comes after a refusal is not tried"


def test_two_homes_have_two_units(tmp_path: Path) -> None:
    names = {installation.plan(Home(tmp_path / name), "linux").path.name for name in (".service", "one", "two")}
    assert len(names) == 3
    assert "delegation-service.service" in names


def test_a_daemon_that_runs_by_hand_is_in_the_way(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    lock = FileLock.take(home.daemon_lock, wait=0)
    assert lock
    wanted = installation.plan(home, "linux")
    with pytest.raises(RefusedError, match="started by hand"):
        installation.install(home, wanted)
    lock.release()
    assert not wanted.path.exists()


def test_launchd_is_told_in_its_own_format(tmp_path: Path) -> None:
    wanted = installation.plan(Home(tmp_path / "home"), "darwin")
    plist = plistlib.loads(wanted.text.encode())
    assert plist["ProgramArguments"][-2:] == ["daemon", "run"]
    assert plist["EnvironmentVariables"]["SERVICE_HOME"] == str(tmp_path / "home")
    assert plist["AbandonProcessGroup"] is True


def test_other_systems_are_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be installed on"):
        installation.plan(Home(tmp_path / "home"), "freebsd14")


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> installation.Installation:
    """Return the service of a system in which the account does not exist."""
    monkeypatch.setattr(installation, "ACCOUNT", "delegation-nobody-has")
    return installation.plan_for_system("linux", tmp_path / "system")


@pytest.mark.ruling("Q11")
def test_the_systems_unit_runs_as_an_account_of_its_own(system: installation.Installation, tmp_path: Path) -> None:
    [section] = [part for part in system.text.split("\n\n") if part.startswith("[Service]")]
    settings = dict(line.split("=", 1) for line in section.splitlines() if "=" in line and line[0] != "#")
    assert (settings["User"], settings["KillMode"], settings["Delegate"]) == (installation.ACCOUNT, "process", "yes")
    assert 'SERVICE_HOME=/var/lib/delegation-service/.service"' in system.text, "its commands find it by default"
    assert "WantedBy=multi-user.target" in system.text
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here: apt-get install systemd")
    unit = tmp_path / "checked.service"
    unit.write_text(system.text)
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert "checked.service" not in done.stdout + done.stderr, done.stderr


@pytest.mark.ruling("Q11")
def test_the_account_is_made_before_the_unit_starts(
    system: installation.Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = manager(tmp_path, monkeypatch)
    for name in ("useradd", "chmod"):
        shutil.copy(tmp_path / "bin" / "loginctl", tmp_path / "bin" / name)
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{asked}\n')
    assert installation.put(system)
    made, closed, *manages = asked.read_text().splitlines()
    assert (made.split()[0], made.split()[-1], closed) == (
        "useradd", installation.ACCOUNT, "chmod 700 /var/lib/delegation-service"
    )  # fmt: skip
    assert manages == ["systemctl daemon-reload", "systemctl enable --now delegation-service.service"]
    assert installation.uninstall(system)
    assert not system.path.exists()


@pytest.mark.ruling("Q11")
def test_a_program_that_the_account_cannot_run_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for verb in ("install", "uninstall"):
        with pytest.raises(RefusedError, match=f"{verb}ed by root") as refused:
            installation.require_root(verb)
        assert refused.value.hint.startswith("sudo /")
        assert refused.value.hint.endswith(f" daemon {verb} --system")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "closed" / "env"))
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "closed" / "env").mkdir()
    with pytest.raises(RefusedError, match=f"{tmp_path / 'closed'} is closed to it"):
        installation.require_readable()


@pytest.mark.ruling("Q11")
def test_the_folder_that_is_closed_is_found_around_a_program(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "env").mkdir(parents=True)
    closed.chmod(0o750)
    assert installation.closed_folder(closed / "env" / "python") == closed
    assert installation.closed_folder(Path("/usr/bin/python3")) is None
