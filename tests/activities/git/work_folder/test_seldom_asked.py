"""The cost of a job: repositories are opened once, and folders are compared without libgit2 (ruling N3)."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from activities.git import library as git_library
from activities.git.library import keep_open, let_go, library, open_repository
from activities.git.work_folder import delete_later, files_for_commit, service_git_dir, worktree_changes
from activities.git.work_folder.worktree_changes import look
from activities.git.work_folder.worktrees import Worktree, add_branch, add_detached, dispose
from tests.activities.git.conftest import commit_file, run_git

pytestmark = pytest.mark.ruling("N3", "I4")


@pytest.fixture
def reader(repo: Path, trees: Path) -> Worktree:
    return add_detached(repo, trees / "r", "main")


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the service's side is opened."""

    def refuse(path: Path) -> None:
        raise AssertionError(f"{path} is opened")

    monkeypatch.setattr(worktree_changes, "open_repository", refuse)
    monkeypatch.setattr(files_for_commit, "open_alone", refuse)


class TestKeptOpen:
    def test_a_repository_is_opened_once_and_by_each_thread_for_itself(self, repo: Path) -> None:
        theirs: list[object] = []
        with keep_open():
            first = open_repository(repo)
            let_go(first)
            with keep_open():
                assert open_repository(repo) is first
            assert open_repository(repo) is first, "what is kept further in stays open further out"
            other = Thread(target=lambda: theirs.append(open_repository(repo)))
            other.start()
            other.join()
            assert theirs[0] is not first
        assert open_repository(repo) is not first

    def test_a_branch_that_moves_meanwhile_is_seen(self, repo: Path) -> None:
        with keep_open():
            before = open_repository(repo).revparse_single("main").id
            made = commit_file(repo, "new.txt", "x")
            assert str(open_repository(repo).revparse_single("main").id) == made != str(before)

    def test_a_work_folder_is_made_with_each_repository_opened_once(
        self, repo: Path, trees: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        anew, paths = git_library.open_alone, list[Path]()

        def open_alone(path: Path) -> object:
            paths.append(path)
            return anew(path)

        monkeypatch.setattr(git_library, "open_alone", open_alone)
        add_branch(repo, trees / "w", "service/w", "main")
        assert paths
        assert len(paths) == len(set(paths))


class TestLook:
    def test_what_no_agent_touched_is_looked_at_without_libgit2(self, reader: Worktree, silent: None) -> None:
        seen = look(reader)
        assert (seen.head, seen.own, seen.touched, seen.odd, seen.refused) == (reader.base, reader.base, (), (), None)
        assert seen.tree == run_git(reader.path, "rev-parse", "HEAD^{tree}")

    @pytest.mark.parametrize(
        ("change", "touched"),
        [
            (lambda path: (path / "src/a.py").write_text("changed"), ("src/a.py",)),
            (lambda path: (path / "new.txt").touch(), ("new.txt",)),
            (lambda path: (path / "readme.md").unlink(), ("readme.md",)),
            (lambda path: commit_file(path, "readme.md", "committed"), ("readme.md",)),
            (lambda path: os.mkfifo(path / "pipe"), ("pipe",)),
            (lambda path: run_git(path, "init", "-q", "inner"), ("inner",)),
        ],
        ids=["changed", "new", "gone", "committed", "odd", "nested"],
    )
    def test_whatever_an_agent_touched_is_found(
        self, reader: Worktree, change: Callable[[Path], object], touched: tuple[str, ...]
    ) -> None:
        change(reader.path)
        assert look(reader).touched == touched

    def test_a_head_elsewhere_with_the_same_files_is_told(self, reader: Worktree) -> None:
        run_git(reader.path, "commit", "-q", "--allow-empty", "-m", "nothing")
        assert look(reader).head == run_git(reader.path, "rev-parse", "HEAD") != reader.base

    def test_rules_of_folders_that_were_entered_before_hold_for_what_is_new(self, reader: Worktree) -> None:
        (reader.path / "deep/er").mkdir(parents=True)
        (reader.path / "deep/.gitignore").write_text("*.tmp\n")
        for name in ("x.tmp", "x.txt"):
            (reader.path / "deep/er" / name).touch()
        assert look(reader).touched == ("deep/.gitignore", "deep/er/x.txt")


class TestRemoving:
    def test_nothing_outside_a_folder_is_removed_with_it(self, tmp_path: Path) -> None:
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept/file").touch()
        folder = tmp_path / "folder"
        (folder / "deep/er").mkdir(parents=True)
        (folder / "deep/link").symlink_to(tmp_path / "kept")
        os.mkfifo(folder / "pipe")
        delete_later.delete(folder)
        assert not folder.exists()
        folder.symlink_to(tmp_path / "kept")
        delete_later.delete(folder)
        assert (tmp_path / "kept/file").exists()

    @pytest.mark.parametrize("many", [32, 320])
    def test_a_work_folder_goes_whatever_its_size(self, repo: Path, reader: Worktree, many: int) -> None:
        for number in range(many):
            (reader.path / f"{number}.txt").touch()
        dispose(repo, reader.path)
        assert list(reader.path.parent.iterdir()) == []
        assert not service_git_dir.side_of(reader.path).exists()


def test_comments_alone_are_not_copied_and_rules_are(repo: Path, trees: Path) -> None:
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/exclude").write_text("# nothing\n\n")
    plain = add_detached(repo, trees / "plain", "main")
    (repo / ".git/info/exclude").write_text("# something\n*.secret\n")
    ruled = add_detached(repo, trees / "ruled", "main")
    for place in (plain, ruled):
        (place.path / "a.secret").touch()
    assert [look(place).touched for place in (plain, ruled)] == [("a.secret",), ()]
    assert not (plain.path / ".git/info/exclude").exists()
    (repo / ".git/info/exclude").unlink()
    os.mkfifo(repo / ".git/info/exclude")
    assert not service_git_dir.says_something(repo / ".git/info/exclude"), "a pipe is not waited for"
    assert library().Repository(str(ruled.path)).path_is_ignored("b.secret")


def test_a_checkout_that_is_to_have_no_files_gives_a_work_folder_without_any(repo: Path, trees: Path) -> None:
    run_git(repo, "config", "core.sparseCheckout", "true")
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/sparse-checkout").write_text("# nothing\n")
    place = add_detached(repo, trees / "none", "main")
    assert [each.name for each in place.path.iterdir()] == [".git"]
    assert look(place).touched == ()


def test_who_looks_from_another_base_than_the_recorded_one_is_told_the_difference(repo: Path, trees: Path) -> None:
    before = run_git(repo, "rev-parse", "HEAD")
    commit_file(repo, "src/a.py", "changed")
    place = add_detached(repo, trees / "w", "main")
    assert look(Worktree(place.path, before)).touched == ("src/a.py",)
