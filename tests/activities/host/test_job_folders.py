"""Where on the disk the folders of jobs lie."""

import fcntl
from pathlib import Path

import pytest

from activities.host import job_folders
from activities.settings.home import Home


def test_what_is_made_for_one_job_need_not_lie_beside_that_of_another(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    try:
        job_folders.is_spread(home.root)
    except OSError:
        pytest.skip("this file system has no such flags")
    for _ in range(2):
        job_folders.ready(home)
        folders = (home.runs, home.worktrees, home.root / "checkouts")
        assert [(job_folders.is_spread(each), each.stat().st_mode & 0o777) for each in folders] == [(True, 0o700)] * 3
    (home.worktrees / "job").mkdir()
    assert not job_folders.is_spread(home.worktrees / "job"), "the files of one job belong together"


def test_a_file_system_without_such_flags_is_as_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_call(*_: object) -> bytes:
        raise OSError(25, "Inappropriate ioctl for device")

    monkeypatch.setattr(fcntl, "ioctl", no_such_call)
    home = Home(tmp_path / "home").ensure()
    job_folders.ready(home)
    assert home.worktrees.is_dir()
