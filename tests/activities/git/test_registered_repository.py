"""References are read and packed while other processes change them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.git import registered_repository
from activities.git.registered_repository import pack_references, references
from tests.activities.git.conftest import make_repository, run_git

MAIN = "refs/heads/main"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


def loose(repo: Path) -> list[str]:
    return [name for _, _, names in os.walk(repo / ".git/refs") for name in names]


def test_references_are_packed_once_many_are_loose(repo: Path) -> None:
    new = [f"refs/heads/service/job-{number}" for number in range(registered_repository.MOST_LOOSE)]
    run_git(repo, "update-ref", "--stdin", stdin="".join(f"create {name} {MAIN}\n" for name in new[:-1]))
    pack_references(repo)
    assert len(loose(repo)) == len(new)
    run_git(repo, "update-ref", new[-1], MAIN)
    pack_references(repo)
    assert loose(repo) == []
    assert references(repo / ".git").keys() == {MAIN, *new}


def test_references_that_cannot_be_packed_stop_no_job(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registered_repository, "MOST_LOOSE", 0)
    pack_references(repo.with_name("gone"))
    (repo / ".git/packed-refs").mkdir()
    pack_references(repo)
    assert loose(repo) == ["main"]


def test_a_reference_that_git_packs_meanwhile_is_read(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = os.walk

    def walk_and_pack(path: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        listed = list(walk(path))
        run_git(repo, "pack-refs", "--all")
        return iter(listed)

    monkeypatch.setattr(os, "walk", walk_and_pack)
    assert references(repo / ".git").keys() == {MAIN}
