"""Difficult repositories, settings and agents: the service works, or says clearly why not."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from activities.git.library import ObjectsError, RepositoryError, open_repository
from activities.git.locks import hold_lock
from activities.git.merges.into_work_folder import merge
from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.worktree_changes import touched_files
from activities.git.work_folder.worktrees import (
    BRANCHES_LOCK,
    Worktree,
    add_branch,
    add_detached,
    dispose,
    find,
    repair,
)
from tests.activities.git.conftest import commit_file, make_repository, run_git
from workflows.model.errors import NotFoundError, RefusedError

pytestmark = pytest.mark.ruling("I1", "I2", "I4")
JOB = "job-abc.1"


def round_trip(repo: Path, trees: Path) -> None:
    """A leg writes a file, is observed, committed, merged for a dependent, and all worktrees are removed."""
    base = run_git(repo, "rev-parse", "HEAD")
    leg = add_branch(repo, trees / "leg", "service/job-x-leg", base)
    own = commit_file(leg.path, "own.txt", "by the agent\n")
    (leg.path / "work.txt").write_text("work\n")
    assert touched_files(leg).files == ("own.txt", "work.txt")
    head = commit_all(leg, JOB, "work")
    assert [head, own, base] == run_git(repo, "rev-list", "--max-count=3", "service/job-x-leg").split()
    dispose(repo, leg.path)
    dependent = merge(add_detached(repo, trees / "dependent", base), ["service/job-x-leg"])
    assert (dependent.path / "work.txt").read_text() == "work\n"
    assert touched_files(dependent).files == ()
    dispose(repo, dependent.path)
    assert os.listdir(trees) == []
    assert run_git(repo, "rev-parse", "HEAD") == base


class TestRepositories:
    def test_sha256_is_refused_with_a_way_out(self, tmp_path: Path, trees: Path) -> None:
        run_git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", "repo")
        assert len(commit_file(tmp_path / "repo", "a", "x")) == 64
        with pytest.raises(RepositoryError, match="keeps its objects by SHA-256") as refused:
            add_detached(tmp_path / "repo", trees / "w", "main")
        assert "fast-export --all" in refused.value.hint

    def test_a_partial_clone_works_as_far_as_its_objects_go_and_says_what_brings_the_rest(
        self, repo: Path, tmp_path: Path, trees: Path
    ) -> None:
        run_git(repo, "config", "uploadpack.allowFilter", "true")
        run_git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{repo}", "partial")
        round_trip(tmp_path / "partial", trees)
        run_git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{repo}", "empty")
        with pytest.raises(RepositoryError, match="is a partial clone") as refused:
            add_detached(tmp_path / "empty", trees / "w", "main")
        dispose(tmp_path / "empty", trees / "w")
        run_git(tmp_path / "empty", *refused.value.hint.split()[3:])
        round_trip(tmp_path / "empty", trees)

    def test_bare_shallow_and_detached(self, repo: Path, tmp_path: Path, trees: Path) -> None:
        commit_file(repo, "two", "2")
        run_git(tmp_path, "clone", "-q", "--bare", "--depth=1", f"file://{repo}", "bare.git")
        round_trip(tmp_path / "bare.git", trees)
        run_git(repo, "checkout", "-q", "--detach")
        round_trip(repo, trees)

    def test_a_linked_worktree_with_settings_of_its_own(self, repo: Path, tmp_path: Path, trees: Path) -> None:
        run_git(repo, "worktree", "add", "-q", "-b", "theirs", str(tmp_path / "linked"))
        run_git(repo, "config", "extensions.worktreeConfig", "true")
        run_git(tmp_path / "linked", "config", "--worktree", "core.autocrlf", "input")
        round_trip(tmp_path / "linked", trees)

    def test_a_remote_that_is_missing(self, repo: Path, trees: Path) -> None:
        run_git(repo, "remote", "add", "origin", "/no/such/place")
        run_git(repo, "config", "branch.main.remote", "origin")
        run_git(repo, "config", "branch.main.merge", "refs/heads/main")
        round_trip(repo, trees)

    def test_moved_meanwhile(self, repo: Path, tmp_path: Path, trees: Path) -> None:
        leg = add_branch(repo, trees / "w", "leg", "main")
        (leg.path / "x").write_text("x")
        moved = repo.rename(tmp_path / "moved")
        with pytest.raises(ObjectsError, match="git failed in"):
            touched_files(leg)
        with pytest.raises(NotFoundError, match="the path is missing"):
            add_branch(repo, leg.path, "leg", "main")
        with pytest.raises(NotFoundError, match="the path is missing"):
            open_repository(repo)
        assert add_branch(moved, leg.path, "leg", "main") == leg
        assert touched_files(leg).files == ("x",)
        assert run_git(leg.path, "status", "--porcelain") == "?? x", "the agent's git knows the new place too"

    def test_moved_while_an_agent_commits(self, repo: Path, tmp_path: Path, trees: Path) -> None:
        leg = add_branch(repo, trees / "w", "leg", "main")
        own = commit_file(leg.path, "x", "x")
        moved = repo.rename(tmp_path / "moved")
        assert repair(moved, leg.path)
        assert commit_all(leg, JOB, "x") == own == run_git(moved, "rev-parse", "leg")

    def test_sparse_checkout(self, tmp_path: Path, trees: Path) -> None:
        repo = make_repository(tmp_path / "repo", **{"in/a": "a", "out/b": "b"})
        run_git(repo, "sparse-checkout", "set", "in")
        leg = add_branch(repo, trees / "w", "leg", "main")
        assert sorted(os.listdir(leg.path)) == [".git", "in", "readme.md"]
        (leg.path / "out").mkdir()
        (leg.path / "out/new").write_text("made outside of the cone")
        (leg.path / "out/b").write_text("changed there")
        assert touched_files(leg).files == ("out/b", "out/new")
        commit_all(leg, JOB, "x")
        assert run_git(repo, "diff", "--name-only", "main", "leg").split() == ["out/b", "out/new"]

    def test_pointers_of_large_files_stay_pointers(self, tmp_path: Path, trees: Path) -> None:
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 5\n"
        repo = make_repository(tmp_path / "repo", **{"big.bin": pointer, ".gitattributes": "*.bin filter=lfs -text\n"})
        for key, value in (("smudge", "no-such-lfs"), ("clean", "no-such-lfs"), ("process", "no-such-lfs")):
            run_git(repo, "config", f"filter.lfs.{key}", value)
        run_git(repo, "config", "filter.lfs.required", "true")
        leg = add_branch(repo, trees / "w", "leg", "main")
        assert (leg.path / "big.bin").read_text() == pointer
        (leg.path / "x").write_text("x")
        assert touched_files(leg).files == ("x",)
        assert commit_all(leg, JOB, "x")

    def test_a_filter_is_not_run_and_files_stay_as_they_are_stored(self, tmp_path: Path, trees: Path) -> None:
        repo = make_repository(tmp_path / "repo", **{"s.key": "x", ".gitattributes": "*.key filter=crypt\n"})
        run_git(repo, "config", "filter.crypt.smudge", "no-such-crypt")
        run_git(repo, "config", "filter.crypt.required", "true")
        leg = add_branch(repo, trees / "w", "leg", "main")
        assert (leg.path / "s.key").read_text() == "x"
        assert touched_files(leg).files == ()
        (leg.path / "s.key").write_text("y")
        commit_all(leg, JOB, "x")
        assert run_git(repo, "show", "leg:s.key") == "y"


class TestSettings:
    @pytest.mark.parametrize("value", ["true", "input"])
    def test_line_ends(self, repo: Path, trees: Path, value: str) -> None:
        run_git(repo, "config", "core.autocrlf", value)
        round_trip(repo, trees)

    def test_a_person_with_hooks_signatures_and_a_lock(
        self, repo: Path, trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "hooks").mkdir()
        names = ("pre-commit", "post-checkout", "pre-merge-commit", "commit-msg", "reference-transaction", "fsmonitor")
        for name in names:
            (tmp_path / "hooks" / name).write_text("#!/bin/sh\nexit 1\n")
            (tmp_path / "hooks" / name).chmod(0o755)
        config = f"[core]\nhooksPath={tmp_path}/hooks\nfsmonitor={tmp_path}/hooks/fsmonitor\n"
        (tmp_path / ".gitconfig").write_text(
            config + "[commit]\ngpgSign=true\n[gpg]\nprogram=false\n[merge]\nff=only\n"
        )
        monkeypatch.setenv("HOME", str(tmp_path))
        with (repo / ".git/config").open("a") as own:
            own.write(config)
        (repo / ".git/index.lock").touch()  # a person's git has died, or is at work
        round_trip(repo, trees)
        assert (repo / ".git/index.lock").exists()


class TestNames:
    def test_every_kind_of_name(self, repo: Path, trees: Path) -> None:
        names = ["a b", "new\nline", 'quo"te', "tab\t", "caf\udce9", "-n", ":(glob)*", "back\\slash", "é"]
        leg = add_branch(repo, trees / "w", "leg", "main")
        for name in names:
            (leg.path / name).write_text(name.encode("utf-8", "surrogateescape").hex())
        (leg.path / "link").symlink_to("/etc/passwd")
        (leg.path / "dangling").symlink_to("nowhere")
        assert len(touched_files(leg).files) == len(names) + 2
        assert commit_all(leg, JOB, "x")
        listing = run_git(repo, "ls-tree", "-r", "-z", "leg").split("\0")
        assert set(names) <= {entry.partition("\t")[2] for entry in listing}
        assert sum(entry.startswith("120000") for entry in listing) == 2
        dispose(repo, leg.path)
        again = add_branch(repo, leg.path, "leg", "main")
        assert os.readlink(again.path / "link") == "/etc/passwd"
        assert set(names) <= set(os.listdir(again.path))

    def test_a_rename_of_case_only_is_both_paths(self, repo: Path, trees: Path) -> None:
        leg = add_branch(repo, trees / "w", "leg", "main")
        (leg.path / "readme.md").rename(leg.path / "README.md")
        assert touched_files(leg).files == ("README.md", "readme.md")
        commit_all(leg, JOB, "x")
        assert "README.md" in run_git(repo, "ls-tree", "--name-only", "leg").split()


class TestAgents:
    @pytest.fixture
    def leg(self, repo: Path, trees: Path) -> Worktree:
        return add_branch(repo, trees / "w", "leg", "main")

    def test_deletes_the_git_file(self, repo: Path, leg: Worktree) -> None:
        (leg.path / "x").write_text("x")
        shutil.rmtree(leg.path / ".git")
        assert find(leg.path) == leg
        assert touched_files(leg).files == ("x",)

    def test_its_work_in_a_shared_worktree_survives_that(self, repo: Path, leg: Worktree) -> None:
        (leg.path / "x").write_text("x")
        shutil.rmtree(leg.path / ".git")
        assert add_branch(repo, leg.path, "leg", "main") == leg
        assert (leg.path / "x").exists()

    def test_makes_the_worktree_a_repository_of_its_own(self, repo: Path, leg: Worktree) -> None:
        shutil.rmtree(leg.path / ".git")
        run_git(leg.path, "init", "-q", "-b", "leg")
        commit_file(leg.path, "x", "x")
        assert touched_files(leg).files == ("x",)
        with pytest.raises(RefusedError, match="does not contain its branch leg"):
            commit_all(leg, JOB, "x")
        assert (leg.path / "x").exists()
        assert run_git(repo, "rev-parse", "leg") == leg.base

    def test_rebases(self, repo: Path, leg: Worktree) -> None:
        commit_file(leg.path, "mine", "x")
        newer = commit_file(repo, "theirs", "x")
        run_git(leg.path, "fetch", "-q", str(repo), "main")
        run_git(leg.path, "rebase", "-q", "FETCH_HEAD")
        head = commit_all(leg, JOB, "x")
        assert run_git(repo, "rev-parse", "leg", "leg^").split() == [head, newer]

    def test_stops_in_the_middle_of_a_rebase(self, repo: Path, leg: Worktree) -> None:
        commit_file(leg.path, "readme.md", "mine")
        own = commit_file(leg.path, "more", "x")
        theirs = commit_file(repo, "readme.md", "theirs")
        with pytest.raises(subprocess.CalledProcessError):
            run_git(leg.path, "rebase", "-q", theirs)
        with pytest.raises(RefusedError, match="does not contain its branch leg"):
            commit_all(leg, JOB, "x")
        assert run_git(repo, "rev-parse", "leg") == leg.base
        assert run_git(leg.path, "rev-parse", "leg") == own, "it is still there"

    def test_fills_it_with_ignored_files(self, leg: Worktree) -> None:
        (leg.path / "build").mkdir()
        for number in range(500):
            (leg.path / "build" / str(number)).touch()
        assert touched_files(leg).files == ()
        assert commit_all(leg, JOB, "x") is None

    def test_its_killed_git_left_locks_everywhere(self, repo: Path, leg: Worktree) -> None:
        (leg.path / "x").write_text("x")
        run_git(leg.path, "checkout", "-q", "-b", "idea")
        for lock in ("index.lock", "HEAD.lock", "refs/heads/idea.lock"):
            (leg.path / ".git" / lock).touch()
        (repo / ".git/refs/heads/leg.lock").touch()
        head = commit_all(leg, JOB, "x")
        assert run_git(repo, "rev-parse", "leg") == head

    def test_a_lock_on_its_branch_does_not_stop_the_next_attempt(self, repo: Path, trees: Path) -> None:
        (repo / ".git/refs/heads/leg.lock").touch()
        assert add_branch(repo, trees / "w", "leg", "main").branch == "leg"


class TestTogether:
    def test_sixteen_legs_of_one_repository(self, repo: Path, trees: Path) -> None:
        with ThreadPoolExecutor(16) as pool:
            names = [f"w{number}" for number in range(16)]
            made = list(pool.map(lambda name: add_branch(repo, trees / name, f"leg-{name}", "main"), names))
            assert all((worktree.path / "src/a.py").exists() for worktree in made)
            list(pool.map(lambda worktree: dispose(repo, worktree.path), made))
        assert os.listdir(trees) == []
        assert not list((repo / ".git").glob("*.lock"))

    def test_files_are_written_while_somebody_else_changes_worktrees(
        self, repo: Path, trees: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The long part of the set-up does not hold the lock that all branches share."""
        seen: list[bool] = []

        def fill(common: Path, path: Path, side: Path, commit: str) -> None:
            with hold_lock(side.parent / BRANCHES_LOCK):
                seen.append(path.is_dir())

        monkeypatch.setattr("activities.git.work_folder.worktrees.fill_all", fill)
        add_branch(repo, trees / "w", "leg", "main")
        assert seen == [True]

    def test_a_lock_is_one_holders_even_while_its_file_comes_and_goes(self, tmp_path: Path) -> None:
        inside: list[int] = []

        def once(number: int) -> None:
            with hold_lock(tmp_path / "lock"):
                inside.append(number)
                assert inside == [number]
                inside.remove(number)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(once, range(200)))
        assert os.listdir(tmp_path) == []
