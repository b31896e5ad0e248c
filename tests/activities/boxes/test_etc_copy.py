"""The copy of /etc that boxes see: its files without secrets, as they are now (ruling N2)."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from activities.boxes import etc_copy, system_files

pytestmark = pytest.mark.ruling("N2")


def test_the_copy_has_the_listed_files_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_files, "ETC", ("passwd", "shadow", "ssl/certs", "localtime"))
    copy = etc_copy.current(tmp_path)
    assert (copy / "passwd").read_bytes() == Path("/etc/passwd").read_bytes()
    assert {each.name for each in copy.iterdir()} <= {"passwd", "ssl", "localtime"}
    assert not any(each.stat().st_mode & 0o022 for each in copy.iterdir())
    assert not (copy / "localtime").is_symlink()


def test_the_copy_is_cached_until_a_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_files, "ETC", ("hosts", "passwd"))
    first = etc_copy.current(tmp_path)
    assert etc_copy.current(tmp_path) == first
    monkeypatch.setattr(system_files, "ETC", ("hosts",))
    later = etc_copy.current(tmp_path)
    assert later != first
    assert first.is_dir(), "runs still use it"
    os.utime(first, (0, 0))
    monkeypatch.setattr(system_files, "ETC", ("passwd",))
    assert etc_copy.current(tmp_path).is_dir()
    assert not first.exists()
    assert later.exists()


def test_concurrent_callers_make_one_copy(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(etc_copy.current, [tmp_path] * 16))
    assert list(tmp_path.iterdir()) == list(made)


def test_a_copy_that_another_thread_has_removed_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / f"{etc_copy.PREFIX}gone").symlink_to("nowhere")
    assert etc_copy.current(tmp_path).is_dir()


def test_a_copy_that_cannot_be_made_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path, **_: object) -> None:
        reason = f"[Errno 28] No space left on device: '{source}' -> '{target}'"
        raise shutil.Error([(str(source), str(target), reason)])

    monkeypatch.setattr(system_files, "ETC", ("ssl/certs", "alternatives"))
    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(OSError, match=r"^/etc cannot be copied: \[Errno 28\] No space left on device: '/etc/") as no:
        etc_copy.current(tmp_path)
    assert not isinstance(no.value, shutil.Error)
    assert list(tmp_path.iterdir()) == []
