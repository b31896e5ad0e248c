"""Worktrees of every kind of repository, made and removed again and again, and repaired after a kill."""

import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.git.command import GitError, git
from activities.git.library import RepositoryError
from activities.git.work_folder import delete_later
from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.worktrees import (
    Worktree,
    add_branch,
    add_detached,
    dispose,
    find,
    mark_base,
    tip,
    worktree_path,
    worktree_prefix,
)
from activities.jobs import workspace
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.depth import cases
from workflows.contract.models import Action
from workflows.contract.worktree_names import worktree_fault
from workflows.model.errors import NotFoundError, RefusedError
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.workers import Assignment, Worker

pytestmark = pytest.mark.ruling("I1", "I2")


def sides(trees: Path) -> list[str]:
    """Return the service's sides beside the work folders."""
    beside = trees.parent / "checkouts"
    return sorted(os.listdir(beside)) if beside.exists() else []


def registered(repo: Path) -> int:
    return run_git(repo, "worktree", "list", "--porcelain").count("worktree ")


def test_a_branch_worktree_starts_at_the_base(repo: Path, trees: Path) -> None:
    base = run_git(repo, "rev-parse", "HEAD")
    commit_file(repo, "later.txt", "x")
    worktree = add_branch(repo, trees / "w", "service/job-a.1-leg", base)
    assert worktree == Worktree(trees / "w", base, "service/job-a.1-leg")
    assert run_git(worktree.path, "symbolic-ref", "--short", "HEAD") == "service/job-a.1-leg"
    assert (worktree.path / "src/a.py").exists()
    assert not (worktree.path / "later.txt").exists()


@pytest.mark.ruling("N3")
def test_a_worktree_comes_back_from_the_helper_that_made_it(repo: Path, trees: Path) -> None:
    """A shell stage gives no names; what cannot be sent ends the helper, and its work is done twice."""
    for made in (add_detached(repo, trees / "a", tip(repo)), add_branch(repo, trees / "b", "service/b", tip(repo))):
        assert pickle.loads(pickle.dumps(made)) == made


def test_adding_again_leaves_what_is_there_alone(repo: Path, trees: Path) -> None:
    first = add_branch(repo, trees / "w", "leg", "main")
    commit_file(first.path, "mine.txt", "by the agent")
    (first.path / "dirty.txt").write_text("x")
    (first.path / ".git/index.lock").touch()  # the agent's git may be at work
    assert add_branch(repo, first.path, "leg", "main") == first
    assert (first.path / "dirty.txt").exists()
    assert (first.path / ".git/index.lock").exists()


def test_a_detached_worktree_is_on_no_branch(repo: Path, trees: Path) -> None:
    worktree = add_detached(repo, trees / "w", "main")
    assert worktree.branch is None
    assert run_git(worktree.path, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert add_detached(repo, trees / "w", "main") == worktree == find(trees / "w")


@pytest.mark.ruling("O4")
@pytest.mark.parametrize("whose", ["", "Ann"])
def test_git_merges_and_commits_there_though_the_account_has_no_name(repo: Path, trees: Path, whose: str) -> None:
    """Simulate a box, whose home is empty. A name that the repository itself sets is kept."""
    if whose:
        run_git(repo, "config", "user.name", whose)
        run_git(repo, "config", "user.email", "ann@x")
    other = add_branch(repo, trees / "other", "other", "main")
    commit_file(other.path, "other.txt", "x")
    end = commit_all(other, "job-1", "make it")
    assert end
    worktree = add_branch(repo, trees / "w", "service/job-2", "main", {"leg/other": end})
    commit_file(worktree.path, "mine.txt", "y")
    nameless = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    merge = ["git", "-c", "user.useConfigOnly=true", "merge", "-q", "leg/other"]
    subprocess.run(merge, cwd=worktree.path, env=nameless, check=True)
    assert run_git(worktree.path, "log", "-1", "--format=%an") == (whose or "Delegation Service")


@pytest.mark.ruling("O4")
def test_a_branch_that_collides_with_a_starting_point_is_left_out(repo: Path, trees: Path) -> None:
    for branch in ("leg", "base/old", "legs/one", "base-two"):
        run_git(repo, "branch", branch)
    base = run_git(repo, "rev-parse", "HEAD")
    worktree = add_detached(repo, trees / "w", "main", {"leg/one": base, "base": base})
    there = run_git(worktree.path, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    assert there == ["base", "base-two", "leg/one", "legs/one", "main"]


def test_dispose_keeps_the_branch_and_may_be_repeated(repo: Path, trees: Path) -> None:
    worktree = add_branch(repo, trees / "w", "leg", "main")
    (worktree.path / "mine.txt").write_text("work")
    head = commit_all(worktree, "job-a", "x")
    (worktree.path / "untracked.txt").write_text("x")
    for _ in range(2):
        dispose(repo, worktree.path)
        assert os.listdir(trees) == sides(trees) == []
        assert registered(repo) == 1
    assert run_git(repo, "rev-parse", "leg") == head
    assert add_branch(repo, worktree.path, "leg", "main").base == head


@pytest.mark.parametrize(
    "damage",
    [
        "rm-all",
        "rm-dotgit",
        "rm-base",
        "half-filled",
        "rm-head",
        "empty-dir",
        "dotgit-file",
        "side-alone",
    ],
)
def test_what_a_kill_left_is_repaired(repo: Path, trees: Path, damage: str) -> None:
    worktree = add_branch(repo, trees / "w", "leg", "main")
    side = trees.parent / "checkouts/w.git"
    match damage:
        case "rm-all":
            shutil.rmtree(worktree.path)
        case "rm-dotgit":
            shutil.rmtree(worktree.path / ".git")
        case "rm-base":
            (side / "place.json").unlink()
        case "half-filled":
            (worktree.path / "readme.md").unlink()
            (side / "index").unlink()
            (side / "place.json").unlink()
        case "rm-head":
            (side / "HEAD").unlink()
            (side / "place.json").write_text("{")
        case "empty-dir":
            dispose(repo, worktree.path)
            worktree.path.mkdir()
        case "side-alone":
            dispose(repo, worktree.path)
            side.mkdir(parents=True)
            (side / "branch").write_text("leg")
        case "dotgit-file":
            shutil.rmtree(worktree.path / ".git")
            (worktree.path / ".git").write_text("gitdir: /nowhere\n")
            (side / "place.json").unlink()
        case _:
            pass
    assert add_branch(repo, worktree.path, "leg", "main") == worktree
    assert run_git(worktree.path, "status", "--porcelain") == ""
    assert run_git(worktree.path, "rev-parse", "HEAD") == worktree.base
    dispose(repo, worktree.path)
    assert os.listdir(trees) == sides(trees) == []
    assert registered(repo) == 1


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_disposal_killed_half_way_is_finished(
    repo: Path, trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    worktree, steps = add_detached(repo, trees / "w", "main"), iter(range(after))
    repo.rename(tmp_path / "moved")  # only its form shows that this was a worktree

    def killed(*paths: Path) -> Path:
        if next(steps, None) is None:
            raise KeyboardInterrupt
        return put_away(*paths)

    put_away = delete_later.put_away
    with monkeypatch.context() as patch:
        patch.setattr(delete_later, "put_away", killed)
        patch.setattr(delete_later, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            dispose(repo, worktree.path)
    dispose(repo, worktree.path)
    assert os.listdir(trees) == sides(trees) == []
    delete_later.empty(trees.parent / delete_later.FOLDER)
    assert os.listdir(trees.parent / delete_later.FOLDER) == []


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is read-only for root")
def test_read_only_folders_do_not_stop_disposal(repo: Path, trees: Path) -> None:
    worktree = add_detached(repo, trees / "w", "main")
    (worktree.path / "cache/inner").mkdir(parents=True)
    (worktree.path / "cache/inner/x").touch()
    for path in ("cache/inner", "cache"):
        (worktree.path / path).chmod(0o500)
    dispose(repo, worktree.path)
    assert os.listdir(trees) == []


ADDER = """
import sys
from pathlib import Path
from activities.git.library import RepositoryError
from activities.git.work_folder.worktrees import add_branch, dispose
repo, path = Path(sys.argv[1]), Path(sys.argv[2])
print("adding", flush=True)
while True:
    add_branch(repo, path, "leg", "main")
    dispose(repo, path)
"""


def test_killing_it_at_any_moment_leaves_nothing_that_stays_broken(tmp_path: Path, trees: Path) -> None:
    repo = make_repository(tmp_path / "big", **{f"f{n}": "x" * 3000 for n in range(300)})
    moments = random.Random(7)
    for _ in range(10):
        adder = subprocess.Popen([sys.executable, "-c", ADDER, repo, trees / "w"], stdout=subprocess.PIPE)
        assert adder.stdout is not None
        assert adder.stdout.readline() == b"adding\n"
        time.sleep(moments.uniform(0.0, 0.12))
        adder.kill()
        adder.communicate()
        worktree = add_branch(repo, trees / "w", "leg", "main")
        assert run_git(worktree.path, "status", "--porcelain") == ""
        assert registered(repo) == 1
    dispose(repo, trees / "w")
    assert os.listdir(trees) == sides(trees) == []
    assert not list((repo / ".git").glob("**/*.lock"))


def test_many_at_once(repo: Path, trees: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda n: add_branch(repo, trees / f"w{n % 4}", f"leg{n % 4}", "main"), range(8)))
    assert len({worktree.path for worktree in made}) == 4
    assert sides(trees) == [f"w{number}.git" for number in range(4)]


class TestRepositories:
    def test_missing_path(self, tmp_path: Path, trees: Path) -> None:
        with pytest.raises(NotFoundError, match="path is missing"):
            add_detached(tmp_path / "nowhere", trees / "w", "main")

    def test_not_a_repository_even_inside_one(self, repo: Path, trees: Path) -> None:
        with pytest.raises(RepositoryError, match="not the root of a git repository"):
            add_detached(repo / "src", trees / "w", "main")

    def test_empty_repository(self, tmp_path: Path, trees: Path) -> None:
        run_git(tmp_path, "init", "-q", "empty")
        with pytest.raises(RepositoryError, match="has no commit yet"):
            add_branch(tmp_path / "empty", trees / "w", "leg", "main")

    def test_unknown_base(self, repo: Path, trees: Path) -> None:
        with pytest.raises(NotFoundError, match="no commit nope"):
            add_branch(repo, trees / "w", "leg", "nope")
        assert not trees.exists()

    def test_a_base_that_looks_like_an_option(self, repo: Path, trees: Path) -> None:
        with pytest.raises(NotFoundError):
            add_detached(repo, trees / "w", "--all")

    def test_bad_branch_name(self, repo: Path, trees: Path) -> None:
        with pytest.raises(RefusedError, match="not a valid branch name"):
            add_branch(repo, trees / "w", "a..b", "main")

    def test_bare(self, repo: Path, tmp_path: Path, trees: Path) -> None:
        run_git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
        worktree = add_branch(tmp_path / "bare.git", trees / "w", "leg", "main")
        assert (worktree.path / "readme.md").exists()
        dispose(tmp_path / "bare.git", worktree.path)
        assert registered(tmp_path / "bare.git") == 1

    def test_detached_head(self, repo: Path, trees: Path) -> None:
        run_git(repo, "checkout", "-q", "--detach")
        assert add_branch(repo, trees / "w", "leg", "HEAD").base == run_git(repo, "rev-parse", "HEAD")

    def test_shallow(self, repo: Path, tmp_path: Path, trees: Path) -> None:
        commit_file(repo, "two", "2")
        run_git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
        assert (add_branch(tmp_path / "shallow", trees / "w", "leg", "main").path / "two").exists()

    def test_of_another_repository(self, repo: Path, tmp_path: Path, trees: Path) -> None:
        add_detached(repo, trees / "w", "main")
        other = make_repository(tmp_path / "other")
        with pytest.raises(RefusedError, match="another repository"):
            add_detached(other, trees / "w", "main")

    def test_of_another_owner(self, repo: Path, trees: Path) -> None:
        if os.getuid() != 0:
            pytest.skip("giving files away needs privileges")
        for path in (repo, repo / ".git"):
            os.chown(path, 12345, 12345)
        assert add_detached(repo, trees / "w", "main").base

    def test_gone_when_disposing(self, repo: Path, trees: Path) -> None:
        worktree = add_detached(repo, trees / "w", "main")
        shutil.rmtree(repo)
        dispose(repo, worktree.path)
        assert not worktree.path.exists()


class TestSubmodules:
    def test_filled_when_the_repository_has_a_copy_and_never_fetched(self, tmp_path: Path, trees: Path) -> None:
        module = make_repository(tmp_path / "module", **{"lib.c": "int x;\n"})
        repo = make_repository(tmp_path / "repo")
        run_git(repo, "submodule", "add", "-q", str(module), "deps/lib")
        run_git(repo, "commit", "-q", "-m", "with a submodule")
        run_git(tmp_path, "clone", "-q", str(repo), "plain")
        shutil.rmtree(module)  # so that only a local copy can help

        worktree = add_branch(repo, trees / "w", "leg", "main")
        assert (worktree.path / "deps/lib/lib.c").exists()
        assert run_git(worktree.path, "status", "--porcelain") == ""
        assert run_git(worktree.path / "deps/lib", "status", "--porcelain") == ""
        dispose(repo, worktree.path)

        left = add_branch(tmp_path / "plain", trees / "x", "leg", "main")
        assert os.listdir(left.path / "deps/lib") == []


class TestSafety:
    def test_a_folder_that_is_no_worktree_stays(self, repo: Path, trees: Path) -> None:
        (trees / "w").mkdir(parents=True)
        (trees / "w/precious.txt").write_text("x")
        for call in (lambda: dispose(repo, trees / "w"), lambda: add_detached(repo, trees / "w", "main")):
            with pytest.raises(RefusedError, match="not a worktree"):
                call()
        assert (trees / "w/precious.txt").exists()

    def test_a_link_is_not_followed(self, repo: Path, trees: Path, tmp_path: Path) -> None:
        worktree = add_detached(repo, trees / "w", "main")
        (tmp_path / "precious").mkdir()
        (tmp_path / "precious/x").touch()
        (worktree.path / "link").symlink_to(tmp_path / "precious")
        (trees / "alias").symlink_to(worktree.path)
        with pytest.raises(RefusedError):
            dispose(repo, trees / "alias")
        dispose(repo, worktree.path)
        assert (tmp_path / "precious/x").exists()

    def test_a_branch_alive_elsewhere_is_named(self, repo: Path, trees: Path) -> None:
        add_branch(repo, trees / "a", "leg", "main")
        with pytest.raises(RefusedError, match=r"branch leg is checked out in .*/a"):
            add_branch(repo, trees / "b", "leg", "main")
        shutil.rmtree(trees / "a")
        assert add_branch(repo, trees / "b", "leg", "main").branch == "leg"

    def test_worktrees_of_people_are_left_alone(self, repo: Path, trees: Path, tmp_path: Path) -> None:
        run_git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "usb-stick"))
        (tmp_path / "usb-stick").rename(tmp_path / "unplugged")
        add_branch(repo, trees / "w", "leg", "main")
        dispose(repo, trees / "w")
        (tmp_path / "unplugged").rename(tmp_path / "usb-stick")
        assert run_git(tmp_path / "usb-stick", "status", "--porcelain") == ""

    def test_hooks_and_hostile_settings_do_not_run(
        self, repo: Path, trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hook = f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n"
        for name in ("post-checkout", "reference-transaction"):
            (repo / ".git/hooks" / name).write_text(hook)
            (repo / ".git/hooks" / name).chmod(0o755)
        run_git(repo, "config", "core.hooksPath", str(repo / ".git/hooks"))
        run_git(repo, "config", "core.fsmonitor", str(repo / ".git/hooks/post-checkout"))
        monkeypatch.setenv("GIT_DIR", "/nonexistent")
        monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent")
        worktree = add_branch(repo, trees / "w", "leg", "main")
        git(worktree.path, "status")
        assert not (tmp_path / "ran").exists()


@pytest.mark.ruling("I3")
@pytest.mark.parametrize("name", ["", "/etc", "../x", "a/../b", ".git", "a//b", "a/", "-x", "a b", "a\n", "é"])
def test_names_that_leave_the_root_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RefusedError, match="must be a relative name"):
        worktree_path(tmp_path, name)


@pytest.mark.ruling("I3")
def test_named_worktrees_are_side_by_side(tmp_path: Path) -> None:
    assert worktree_path(tmp_path, "wt/feature").parent == worktree_path(tmp_path, "wt").parent == tmp_path
    assert worktree_path(tmp_path, "wt/feature") != worktree_path(tmp_path, "wt-feature")


NAMES = st.one_of(
    st.text(st.sampled_from("aZ0._-/~ \n\x00é\\:"), max_size=24),
    st.lists(st.sampled_from(["a", "..", ".git", "x.lock", "b.", "-c", "d..e", "", "f" * 120]), max_size=4).map(
        "/".join
    ),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,210}", fullmatch=True),
)
LONGEST_REPO = f"{'o' * 99}/{'r' * 100}"


@pytest.mark.ruling("I3")
@given(NAMES)
@settings(max_examples=cases(30, 300), deadline=None)
def test_every_name_that_the_contract_allows_works_as_folder_and_branch(name: str) -> None:
    run = JobRun(
        job_id="job-0123456789ab.64",
        root_job_id="job-0123456789ab",
        task_id="task-0123456789ab",
        repo=LONGEST_REPO,
        assignment=Assignment(
            worker=Worker(name="w", runtime="shell"),
            action=Action.IMPLEMENT,
            prompt=Text(),
        ),
        shared_worktree=name,
    )
    if worktree_fault(name) is None:
        path = worktree_path(Path("/worktrees"), workspace._name(run))
        assert path.parent == Path("/worktrees")
        assert len(f"service-worktree-{path.name}.lock") < 255
        assert path.name.startswith(worktree_prefix(LONGEST_REPO))
        branch = workspace.branch_name(run) or ""
        assert subprocess.run(["git", "check-ref-format", f"refs/heads/{branch}"], check=False).returncode == 0
        assert branch.endswith(name.replace("/", "+"))
    else:
        try:
            worktree_path(Path("/worktrees"), name)
        except RefusedError:
            return
        # It could be a folder, but not a branch; or it is only too long.
        assert len(name) > 200 or ".." in name or name.endswith(".") or "./" in name or ".lock" in name


@pytest.mark.ruling("I3")
def test_the_longest_names_are_worktrees_of_their_own(repo: Path, tmp_path: Path) -> None:
    name, other = "w" * 200, "w" * 199 + "v"
    assert worktree_fault(name) is worktree_fault(other) is None
    paths = [worktree_path(tmp_path / "trees", f"{LONGEST_REPO.replace('/', '--')}/{each}") for each in (name, other)]
    for number, path in enumerate(paths):
        add_branch(repo, path, f"service/job-0123456789ab-shared-{number}", "main")
    assert paths[0] != paths[1]
    assert all(path.is_dir() for path in paths)
    for path in paths:
        dispose(repo, path)


@pytest.mark.ruling("I3")
def test_a_worktree_and_one_below_its_name_have_branches_beside_each_other(repo: Path, trees: Path) -> None:
    for name in ("a", "a/b"):
        add_branch(
            repo, worktree_path(trees, name), f"service/job-0123456789ab-shared-{name.replace('/', '+')}", "main"
        )
    assert len(sides(trees)) == 2


def test_the_base_of_a_shared_worktree_moves_when_told(repo: Path, trees: Path) -> None:
    worktree = add_branch(repo, trees / "w", "leg", "main")
    commit_file(worktree.path, "x", "by the leg before")
    with pytest.raises(RefusedError, match="was not taken over"):
        mark_base(worktree.path)
    head = commit_all(worktree, "job-a", "x")
    assert mark_base(worktree.path).base == head
    assert run_git(worktree.path, "status", "--porcelain") == ""
    begun = find(worktree.path)
    assert begun is not None
    assert begun.base == head


def test_git_that_fails_says_what_where_and_why(repo: Path) -> None:
    with pytest.raises(GitError) as caught:
        git(repo, "cat-file", "-p", "nope")
    assert caught.value.returncode == 128
    assert "nope" in caught.value.output
    assert f"git -C {repo} cat-file -p nope" in str(caught.value)
    assert caught.value.exit_code == 1


def test_git_without_end_is_ended(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.git.command.GIT_SECONDS", 0.2)
    with pytest.raises(GitError, match="timed out after") as caught:
        git(repo, "-c", "alias.wait=!sleep 600 & sleep 600", "wait")
    assert caught.value.returncode == -signal.SIGKILL


def test_the_tip_is_what_git_says_however_its_refs_are_kept(repo: Path, trees: Path) -> None:
    def told() -> str:
        return run_git(repo, "rev-parse", "HEAD").strip()

    assert tip(repo) == told()
    commit_file(repo, "more.txt", "more")
    assert tip(repo) == told()
    run_git(repo, "pack-refs", "--all")
    assert tip(repo) == told(), "packed"
    run_git(repo, "checkout", "-q", "--detach", "HEAD~1")
    assert tip(repo) == told(), "detached"
    other = add_branch(repo, trees / "w", "leg", "main").path
    assert tip(other) == run_git(repo, "rev-parse", "main").strip(), "a work folder"
    run_git(repo, "worktree", "add", "-q", "--detach", str(trees / "theirs"), "main")
    assert tip(trees / "theirs") == run_git(repo, "rev-parse", "main").strip(), "a worktree's .git is a file"
    run_git(repo, "symbolic-ref", "HEAD", "refs/heads/unborn")
    with pytest.raises(NotFoundError):
        tip(repo)
