"""Folders that are thrown away are gone at once, and deleted in the end, despite kills and other disks."""

import errno
import os
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from activities.git.work_folder import delete_later
from tests.waiting import wait_for

pytestmark = pytest.mark.ruling("I2")


def folder(path: Path, files: int = 3) -> Path:
    path.mkdir()
    for number in range(files):
        (path / str(number)).write_text("x")
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a trash folder once the folders of earlier tests are deleted."""
    delete_later._deleting.submit(lambda: None).result(60)
    return tmp_path / delete_later.FOLDER


def test_what_is_put_away_is_gone_from_its_place_and_keeps_its_files_until_it_is_deleted(
    tmp_path: Path, place: Path
) -> None:
    for _ in range(2):  # again with an equal name
        path = folder(tmp_path / "w")
        assert (delete_later.put_away(place, path) / "0").read_text() == "x"
        assert not path.exists()
    assert [path.name[:2] for path in place.iterdir()] == ["w.", "w."]
    delete_later.empty(place)
    assert list(place.iterdir()) == []
    delete_later.empty(place / "never made")


@pytest.mark.parametrize("files", [3, delete_later.MOST * 3])
def test_deleting_is_left_to_another_thread(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    going_on, delete = threading.Event(), delete_later.delete

    def deleted(*paths: Path) -> None:
        going_on.wait(20)
        delete(*paths)

    monkeypatch.setattr(delete_later, "delete", deleted)
    gone = delete_later.put_away(place, folder(tmp_path / "w", files))
    delete_later.in_background(gone)
    assert gone.exists(), "the caller waits for nothing"
    going_on.set()
    wait_for(lambda: not gone.exists())


def test_what_is_put_away_within_a_moment_is_deleted_by_one_program(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, programs, run = threading.Event(), list[set[Path]](), subprocess.run

    def started(words: list[str | Path], **how: Any) -> object:
        programs.append({path for path in words if isinstance(path, Path)})
        return run(words, **how)

    monkeypatch.setattr(delete_later, "time", SimpleNamespace(sleep=lambda _: over.wait(60)))
    monkeypatch.setattr(delete_later, "subprocess", SimpleNamespace(run=started, DEVNULL=subprocess.DEVNULL))
    delete_later.in_background()
    gone = [delete_later.put_away(place, folder(tmp_path / name)) for name in ("a", "b", "c")]
    for path in gone:
        delete_later.in_background(path)
    over.set()
    wait_for(lambda: list(place.iterdir()) == [])
    delete_later._deleting.submit(lambda: None).result(60)
    assert programs == [set(gone)]


def test_a_caller_that_fills_the_trash_deletes_itself(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on, delete, ours = threading.Event(), delete_later.delete, threading.get_ident()
    by_caller = []

    def deleted(*paths: Path) -> None:
        if threading.get_ident() == ours:
            by_caller.append(paths)
        else:
            going_on.wait(20)
        delete(*paths)

    monkeypatch.setattr(delete_later, "delete", deleted)
    gone = [delete_later.put_away(place, folder(tmp_path / "w")) for _ in range(delete_later.MOST + 2)]
    for path in gone:
        delete_later.in_background(path)
    assert len(by_caller) == 2
    going_on.set()
    wait_for(lambda: list(place.iterdir()) == [])


def test_a_folder_that_cannot_be_deleted_does_not_keep_others(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad, gone, good = (delete_later.put_away(place, folder(tmp_path / name)) for name in ("bad", "gone", "good"))
    delete = delete_later.delete

    def deleted(path: Path) -> None:
        if path == bad:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))
        delete(path)
        if path == gone:  # another process was faster
            raise FileNotFoundError

    monkeypatch.setattr(delete_later, "delete", deleted)
    delete_later.empty(place)
    assert list(place.iterdir()) == [bad]
    assert not good.exists()
    assert [(record.levelname, str(bad) in record.getMessage()) for record in caplog.records] == [("WARNING", True)]


def test_on_another_disk_it_is_deleted_at_once(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(self: Path, target: Path) -> Path:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(self), None, str(target))

    monkeypatch.setattr(Path, "rename", rename)
    path = folder(tmp_path / "w")
    gone = delete_later.put_away(place, path)
    assert not path.exists()
    assert list(place.iterdir()) == []
    folder(path)
    delete_later.delete(gone)
    assert path.exists(), "it was made anew meanwhile"
