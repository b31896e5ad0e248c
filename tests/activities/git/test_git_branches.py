"""Branches that are moved and deleted while git writes and packs references."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.git import git_branches, hub
from activities.git.git_branches import delete, move, tip
from activities.git.registered_repository import TRACKED as HUB
from tests.activities.git.conftest import make_repository, run_git
from workflows.model.errors import RefusedError

REF = ".git/refs/heads/service/job-a.lock"
PACKED = ".git/packed-refs.lock"
TRACKED = f".git/{HUB}job-a.lock"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repository(tmp_path / "repo")
    run_git(repo, "branch", "service/job-a")
    run_git(repo, "pack-refs", "--all")
    run_git(repo, "commit", "-q", "--allow-empty", "-m", "next")
    return repo


def move_it(repo: Path, old: str, new: str) -> str | None:
    assert move(repo, "service/job-a", new, old, "why")
    return tip(repo, "service/job-a")


def track_it(repo: Path, old: str, new: str) -> str | None:
    hub.track(repo, "service/job-a", new)
    return git_branches.commit(repo, f"{HUB}job-a")


def delete_it(repo: Path, old: str, new: str) -> str | None:
    delete(repo, "service/job-a", old)
    return tip(repo, "service/job-a") or new


@pytest.mark.parametrize(
    ("write", "lock"), [(move_it, REF), (track_it, TRACKED), (delete_it, REF), (delete_it, PACKED)]
)
def test_a_writer_waits_for_whoever_has_the_lock(
    repo: Path, write: Callable[[Path, str, str], str | None], lock: str
) -> None:
    old, new = run_git(repo, "rev-parse", "HEAD~1"), run_git(repo, "rev-parse", "HEAD")
    (repo / lock).parent.mkdir(parents=True, exist_ok=True)
    (repo / lock).touch()
    release = threading.Timer(0.3, (repo / lock).unlink)
    release.start()
    assert write(repo, old, new) == new
    release.join()


def test_a_lock_that_stays_is_an_error(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_branches, "LOCK_SECONDS", 0.1)
    (repo / REF).parent.mkdir(exist_ok=True)
    (repo / REF).touch()
    old = run_git(repo, "rev-parse", "HEAD~1")
    with pytest.raises(OSError, match=r"job-a\.lock"):
        move_it(repo, old, run_git(repo, "rev-parse", "HEAD"))
    assert tip(repo, "service/job-a") == old


def test_a_branch_is_deleted_once_and_only_where_it_was(repo: Path) -> None:
    old = run_git(repo, "rev-parse", "HEAD~1")
    with pytest.raises(RefusedError, match="has moved"):
        delete(repo, "service/job-a", run_git(repo, "rev-parse", "HEAD"))
    assert tip(repo, "service/job-a") == old
    for _ in range(2):
        delete(repo, "service/job-a", old)
    assert tip(repo, "service/job-a") is None
