"""The home's key is made once, is private to its owner, and gives each purpose a key of its own."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from activities.sealing import seal_key
from activities.sealing.seal_key import SealKeyError

pytestmark = pytest.mark.ruling("N4")


def test_concurrent_callers_get_one_key(tmp_path: Path) -> None:
    assert seal_key.read(tmp_path) is None
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: seal_key.ensure(tmp_path), range(32)))
    assert keys == {seal_key.read(tmp_path)}
    assert [path.name for path in tmp_path.iterdir()] == [seal_key.FILE]
    assert (tmp_path / seal_key.FILE).stat().st_mode & 0o777 == 0o600
    assert {len(key) for key in keys} == {32}


def test_each_purpose_and_each_thing_has_a_key_of_its_own() -> None:
    key = bytes(32)
    labels = (("run",), ("run", "a"), ("run", "b"), ("payload",), ("runa",), ("payload", "a"))
    assert len({seal_key.derive(key, *label) for label in labels}) == len(labels)
    assert seal_key.derive(key, "run", "a") == seal_key.derive(key, "run", "a")
    assert seal_key.derive(key, "run", "a") != seal_key.derive(bytes(31) + b"1", "run", "a")


def test_a_key_that_others_could_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    seal_key.ensure(tmp_path)
    (tmp_path / seal_key.FILE).chmod(0o640)
    for use in (seal_key.read, seal_key.ensure):
        with pytest.raises(SealKeyError) as refused:
            use(tmp_path)
        assert refused.value.hint == f"chmod 600 {tmp_path / seal_key.FILE}"


def test_one_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / seal_key.FILE).write_bytes(b"short")
    (tmp_path / seal_key.FILE).chmod(0o600)
    with pytest.raises(SealKeyError, match="does not hold a key of 32 bytes"):
        seal_key.ensure(tmp_path)


def test_a_pipe_or_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / seal_key.FILE, 0o600)
    with pytest.raises(SealKeyError):
        seal_key.ensure(tmp_path)
    (tmp_path / seal_key.FILE).unlink()
    (tmp_path / "mine").write_bytes(bytes(32))
    (tmp_path / "mine").chmod(0o600)
    (tmp_path / seal_key.FILE).symlink_to(tmp_path / "mine")
    with pytest.raises(SealKeyError):
        seal_key.ensure(tmp_path)
