"""The folders of runs have names that cannot be guessed, and are made by the service or refused."""

import os
import secrets
from pathlib import Path

import pytest

from activities.runs import run_folders
from activities.runs.run_folders import RunError, key_of, new, ready

pytestmark = pytest.mark.ruling("N4")


def test_each_has_a_random_name_that_tells_its_job_and_attempt(tmp_path: Path) -> None:
    made = [new(tmp_path / "runs", "job-a.3", 2) for _ in range(3)]
    assert len({path.name for path in made}) == 3
    assert {key_of(path.name) for path in made} == {("job-a.3", 2)}
    assert {len(path.name.rpartition("-")[2]) for path in made} == {32}
    assert {path.stat().st_mode & 0o777 for path in (*made, made[0].parent)} == {0o700}


@pytest.mark.parametrize("there", ["folder", "link", "file"])
def test_a_name_that_is_taken_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str) -> None:
    drawn = iter(["0" * 32, "1" * 32])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(drawn))
    (tmp_path / "elsewhere").mkdir()
    taken = tmp_path / f"job-a.1-{'0' * 32}"
    match there:
        case "folder":
            taken.mkdir()
        case "link":
            taken.symlink_to(tmp_path / "elsewhere")
        case _:
            taken.touch()
    assert new(tmp_path, "job-a", 1).name == f"job-a.1-{'1' * 32}"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_when_every_name_is_taken_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "0" * 32)
    new(tmp_path, "job-a", 1)
    with pytest.raises(RunError, match="no folder for a run"):
        new(tmp_path, "job-a", 1)


def test_the_folder_of_a_further_program_is_made_or_must_be_our_own(tmp_path: Path) -> None:
    folder = tmp_path / "job-a.1.again"
    assert ready(folder) == ready(folder) == folder
    folder.chmod(0o755)
    with pytest.raises(RunError, match="the service has not made it") as refused:
        ready(folder)
    assert str(folder) in refused.value.hint
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="the service has not made it"):
        ready(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can give a folder to another account")
def test_the_folder_of_another_account_is_refused(tmp_path: Path) -> None:
    os.chown(ready(tmp_path / "job-a.1.again"), 65534, 65534)
    with pytest.raises(RunError, match="the service has not made it"):
        ready(tmp_path / "job-a.1.again")


def test_runs_are_kept_in_a_real_folder_of_the_home(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="runs is a link"):
        new(tmp_path / "runs", "job-a", 1)
    with pytest.raises(RunError, match="runs is a link"):
        ready(tmp_path / "runs" / "job-a.1")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert run_folders.key_of("notes") is None
