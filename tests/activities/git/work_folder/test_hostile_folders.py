"""Files that agents write into their work folder and its `.git` are never run, waited for or followed, but reported
(ruling N3).

Every attack is one that a program with a shell can make by itself.
"""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from activities.git.merges.into_work_folder import merge
from activities.git.work_folder import files_for_commit, walk, worktree_changes
from activities.git.work_folder.commit import commit_all
from activities.git.work_folder.leftovers import worth_keeping
from activities.git.work_folder.worktree_changes import capture_diff, look, touched_files
from activities.git.work_folder.worktrees import Worktree, add_branch, add_detached, dispose, find, mark_base
from tests.activities.git.conftest import commit_file, make_repository, run_git
from workflows.model.errors import RefusedError

pytestmark = pytest.mark.ruling("N3")
JOB = "job-abc.1"
SECRET = "what only the operator may read"


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """Raise TimeoutError in a test that waits for a pipe without a writer."""

    def late(*_: object) -> None:
        raise TimeoutError("it waits for somebody")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 60, 5)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def leg(repo: Path, trees: Path) -> Worktree:
    return add_branch(repo, trees / "w", "service/job-abc.1-leg", "main")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Make a folder that the agent may not read."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.py").write_text(SECRET)
    return tmp_path / "outside"


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    """Return the file that every program writes that should never run."""
    return tmp_path / "ran"


def everything(repo: Path, leg: Worktree) -> tuple[str, ...]:
    """Do all that the service does with a work folder after a run. Return its reports."""
    seen = look(leg)
    touched_files(leg, seen=seen)
    capture_diff(leg)
    worth_keeping(repo, leg.path)
    commit_all(leg, JOB, "work", seen)
    return tuple(each.sentence for each in seen.odd)


def program(proof: Path) -> Path:
    """Make a program that leaves a proof that it ran."""
    script = proof.with_name("program")
    script.write_text(f"#!/bin/sh\ntouch {proof}\ncat\n")
    script.chmod(0o755)
    return script


SETTINGS = (
    '[filter "evil"]\n\tclean = {0}\n\tsmudge = {0}\n\tprocess = {0}\n\trequired = true\n'
    '[merge "evil"]\n\tdriver = {0} %A\n[diff "evil"]\n\ttextconv = {0}\n\tcommand = {0}\n'
    "[core]\n\tfsmonitor = {0}\n\thooksPath = {1}\n\tsshCommand = {0}\n\tpager = {0}\n\teditor = {0}\n"
    "\talternateRefsCommand = {0}\n\tgitProxy = {0}\n\taskPass = {0}\n"
    "[uploadpack]\n\tpackObjectsHook = {0}\n[credential]\n\thelper = {0}\n[gpg]\n\tprogram = {0}\n"
    "[commit]\n\tgpgSign = true\n[diff]\n\texternal = {0}\n[include]\n\tpath = {2}\n"
)
HOOKS = ("pre-commit", "post-checkout", "post-commit", "reference-transaction", "pre-push", "post-index-change")


@pytest.mark.parametrize("commits", [True, False])
def test_no_setting_filter_driver_hook_or_monitor_of_the_agents_runs(
    repo: Path, leg: Worktree, proof: Path, tmp_path: Path, commits: bool
) -> None:
    evil, hooks, more = program(proof), tmp_path / "hooks", tmp_path / "more.config"
    for place in (hooks, leg.path / ".git/hooks"):
        place.mkdir(exist_ok=True)
        for name in HOOKS:
            shutil.copy(evil, place / name)
    (leg.path / "one.txt").write_text("x")
    (leg.path / ".gitattributes").write_text("* filter=evil merge=evil diff=evil\n")
    if commits:
        commit_file(leg.path, "own.txt", "x")
    proof.unlink(missing_ok=True)
    more.write_text(f"[core]\n\tfsmonitor = {evil}\n")
    with (leg.path / ".git/config").open("a") as config:
        config.write(SETTINGS.format(evil, hooks, more))
    (leg.path / "readme.md").write_text("changed\n")
    assert everything(repo, leg) == ()
    dependent = merge(add_detached(repo, leg.path.parent / "d", "main"), ("service/job-abc.1-leg",))
    assert (dependent.path / "readme.md").read_text() == "changed\n"
    dispose(repo, leg.path)
    assert not proof.exists()


def test_a_configuration_that_is_a_pipe_or_names_one_is_not_waited_for(repo: Path, leg: Worktree) -> None:
    os.mkfifo(leg.path / ".git/pipe")
    (leg.path / "x").write_text("x")
    commit_file(leg.path, "own.txt", "x")
    with (leg.path / ".git/config").open("a") as config:
        config.write(f"[include]\n\tpath = {leg.path}/.git/pipe\n[core]\n\tworktree = /\n\tbare = true\n")
    everything(repo, leg)
    assert run_git(repo, "show", f"{leg.branch}:x") == "x"
    (leg.path / ".git/config").unlink()
    os.mkfifo(leg.path / ".git/config")
    everything(repo, leg)


PIPES = ("HEAD", "packed-refs", "index", "MERGE_HEAD", "refs/heads/service/job-abc.1-leg", "objects/info/alternates")


@pytest.mark.parametrize("name", PIPES)
def test_a_pipe_in_git_s_folder_is_not_waited_for(repo: Path, leg: Worktree, name: str) -> None:
    commit_file(leg.path, "own.txt", "x")
    (leg.path / "x").write_text("x")
    (leg.path / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(leg.path / ".git" / name)
    everything(repo, leg)
    assert run_git(repo, "show", f"{leg.branch}:x") + run_git(repo, "show", f"{leg.branch}:own.txt") == "xx"


def moved(leg: Worktree, how: str, other: Path) -> None:
    """Replace the `.git`."""
    folder = leg.path / ".git"
    shutil.rmtree(folder)
    match how:
        case "a file that points elsewhere":
            folder.write_text(f"gitdir: {other}/.git\n")
        case "a link":
            folder.symlink_to(other / ".git")
        case "a pipe":
            os.mkfifo(folder)
        case _:
            pass


@pytest.mark.parametrize("how", ["a file that points elsewhere", "a link", "a pipe", "nothing"])
def test_a_git_folder_that_was_replaced_is_told_and_the_files_are_kept(
    repo: Path, leg: Worktree, proof: Path, how: str, tmp_path: Path
) -> None:
    other = make_repository(tmp_path / "other")
    run_git(other, "config", "core.fsmonitor", str(program(proof)))
    commit_file(other, "theirs.txt", SECRET)
    proof.unlink(missing_ok=True)
    (leg.path / "x").write_text("x")
    moved(leg, how, other)
    remarks = everything(repo, leg)
    assert remarks == (".git: it is gone" if how == "nothing" else ".git: it is not a folder any more",)
    assert run_git(repo, "ls-tree", "--name-only", leg.branch or "").split() == [".gitignore", "readme.md", "src", "x"]
    assert find(leg.path) == leg
    assert not proof.exists()
    dispose(repo, leg.path)
    assert (other / ".git/HEAD").exists()


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/service/job-abc.1-leg", "index", "objects"])
def test_a_link_in_git_s_folder_is_not_followed(repo: Path, leg: Worktree, name: str, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    theirs = commit_file(other, "theirs.txt", SECRET)
    (tmp_path / "HEAD").write_text(f"{theirs}\n")
    entry = leg.path / ".git" / name
    target = {"objects": other / ".git/objects", "index": other / ".git/index"}.get(name, tmp_path / "HEAD")
    if entry.is_dir():
        shutil.rmtree(entry)
        (leg.path / ".git/HEAD").write_text(f"{theirs}\n")
    else:
        entry.unlink(missing_ok=True)
        entry.parent.mkdir(parents=True, exist_ok=True)
    entry.symlink_to(target)
    (leg.path / "x").write_text("x")
    try:
        everything(repo, leg)
    except RefusedError:
        assert name == "objects"
    assert run_git(repo, "cat-file", "--batch-all-objects", "--batch-check").count(theirs) == 0


class TestObjects:
    def test_what_is_borrowed_from_elsewhere_is_not_taken_over(self, repo: Path, leg: Worktree, tmp_path: Path) -> None:
        """An agent names an object of another repository, which the service can read, but the agent may not."""
        other = make_repository(tmp_path / "other")
        commit_file(other, "theirs.txt", SECRET)
        tree, theirs = run_git(other, "rev-parse", "HEAD^{tree}"), run_git(other, "rev-parse", "HEAD:theirs.txt")
        with (leg.path / ".git/objects/info/alternates").open("a") as alternates:
            alternates.write(f"{other}/.git/objects\n")
        head = run_git(leg.path, "commit-tree", tree, "-p", leg.base, "-m", "x")
        run_git(leg.path, "update-ref", "refs/heads/service/job-abc.1-leg", head)
        with pytest.raises(RefusedError, match="does not pass git's check"):
            commit_all(leg, JOB, "x")
        assert run_git(repo, "rev-parse", leg.branch or "") == leg.base
        with pytest.raises(subprocess.CalledProcessError):
            run_git(repo, "cat-file", "-e", theirs)

    def test_objects_that_are_links_or_pipes_are_not_followed(self, repo: Path, leg: Worktree, tmp_path: Path) -> None:
        other = make_repository(tmp_path / "other")
        head = commit_file(other, "theirs.txt", SECRET)
        for folder in (other / ".git/objects").glob("[0-9a-f][0-9a-f]"):
            shutil.rmtree(leg.path / ".git/objects" / folder.name, ignore_errors=True)
            (leg.path / ".git/objects" / folder.name).symlink_to(folder)
        (leg.path / ".git/objects/pack").mkdir(exist_ok=True)
        for end in ("pack", "idx"):
            os.mkfifo(leg.path / ".git/objects/pack" / f"pack-{'0' * 40}.{end}")
        (leg.path / ".git/HEAD").write_text(f"{head}\n")
        with pytest.raises(RefusedError):
            commit_all(leg, JOB, "x")

    def test_a_tree_that_holds_a_git_folder_is_refused(self, repo: Path, leg: Worktree) -> None:
        blob = run_git(leg.path, "hash-object", "-w", "readme.md")
        inner = make_tree(leg.path, "100644", "config", blob)
        head = run_git(leg.path, "commit-tree", make_tree(leg.path, "40000", ".git", inner), "-p", leg.base, "-m", "x")
        (leg.path / ".git/HEAD").write_text(f"{head}\n")
        with pytest.raises(RefusedError, match=r"does not pass git's check: (?s:.*)hasDotgit"):
            commit_all(leg, JOB, "x")
        assert "commits were not taken over" in worth_keeping(repo, leg.path), "the folder stays"

    def test_an_object_that_is_not_what_its_name_says_is_refused(self, repo: Path, leg: Worktree) -> None:
        head = commit_file(leg.path, "x", "one")
        name, other = (
            run_git(leg.path, "rev-parse", f"{commit}:x") for commit in (head, commit_file(leg.path, "x", "two"))
        )
        objects = leg.path / ".git/objects"
        target = objects / name[:2] / name[2:]
        target.unlink()
        shutil.copy(objects / other[:2] / other[2:], target)
        with pytest.raises(RefusedError, match="does not pass git's check"):
            commit_all(leg, JOB, "x")

    def test_a_tree_that_names_itself_over_and_over_is_refused(self, repo: Path, leg: Worktree) -> None:
        """Ten folders in each of ten levels make ten billion files out of eleven objects."""
        blob = run_git(leg.path, "hash-object", "-w", "readme.md")
        tree = run_git(leg.path, "mktree", stdin="".join(f"100644 blob {blob}\tf{n}\n" for n in range(10)))
        for _ in range(9):
            tree = run_git(leg.path, "mktree", stdin="".join(f"040000 tree {tree}\td{n}\n" for n in range(10)))
        head = run_git(leg.path, "commit-tree", tree, "-p", leg.base, "-m", "x")
        (leg.path / ".git/HEAD").write_text(f"{head}\n")
        for _ in range(2):
            with pytest.raises(RefusedError, match="has more than 2000000 files"):
                commit_all(leg, JOB, "x")

    def test_a_file_that_was_committed_and_is_too_large_is_refused(
        self, repo: Path, leg: Worktree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("activities.git.work_folder.take_commits.LARGEST_FILE", 1 << 20)
        os.truncate(os.open(leg.path / "zeros", os.O_CREAT | os.O_RDWR), 2 << 20)
        commit_file(leg.path, "x", "x")
        with pytest.raises(RefusedError, match="has a file of more than"):
            commit_all(leg, JOB, "x")

    def test_replaced_and_grafted_commits_stay_what_they_are(self, repo: Path, leg: Worktree) -> None:
        head = commit_file(leg.path, "x", "x")
        evil = commit_file(leg.path, "y", "y")
        run_git(leg.path, "reset", "-q", "--hard", head)
        run_git(leg.path, "replace", head, evil)
        (leg.path / ".git/info").mkdir(exist_ok=True)
        (leg.path / ".git/info/grafts").write_text(f"{head}\n")
        commit_all(leg, JOB, "x")
        assert run_git(repo, "rev-parse", leg.branch or "", f"{leg.branch}^").split() == [head, leg.base]

    def test_packed_objects_are_taken_over_too(self, repo: Path, leg: Worktree) -> None:
        head = commit_file(leg.path, "x", "x")
        run_git(leg.path, "gc", "-q")
        assert commit_all(leg, JOB, "x") == head
        assert run_git(repo, "fsck", "--strict", "--no-dangling") == ""


def make_tree(where: Path, mode: str, name: str, oid: str) -> str:
    """Make a tree with one entry of any name."""
    data = f"{mode} {name}\0".encode() + bytes.fromhex(oid)
    command = ["git", "-C", str(where), "hash-object", "-t", "tree", "-w", "--stdin", "--literally"]
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout.decode().strip()


class TestFiles:
    @pytest.mark.parametrize(
        "name", [".gitattributes", ".gitignore", "src/.gitignore", "pipe", "src/a.py", "readme.md"]
    )
    def test_pipes_are_told_and_left_out(self, repo: Path, leg: Worktree, name: str) -> None:
        (leg.path / name).unlink(missing_ok=True)
        os.mkfifo(leg.path / name)
        (leg.path / "x").write_text("x")
        assert everything(repo, leg) == (f"{name}: a named pipe",)
        assert run_git(repo, "diff", "--name-only", "main", leg.branch or "") == "x", "what is left out is not deleted"

    def test_sockets_and_devices_are_told_and_left_out(self, repo: Path, leg: Worktree, tmp_path: Path) -> None:
        with socket.socket(socket.AF_UNIX) as listening:
            here = os.open(leg.path, os.O_RDONLY)
            listening.bind(f"/proc/self/fd/{here}/socket")
            os.close(here)
        expected = {"socket: a socket"}
        if os.getuid() == 0:
            os.mknod(leg.path / "zero", 0o600 | 0o020000, os.makedev(1, 5))
            expected |= {"zero: a device"}
        assert set(everything(repo, leg)) == expected
        assert commit_all(leg, JOB, "x") is None

    def test_a_link_is_a_link_and_a_folder_behind_one_is_not_entered(
        self, repo: Path, leg: Worktree, outside: Path
    ) -> None:
        shutil.rmtree(leg.path / "src")
        (leg.path / "src").symlink_to(outside)
        (leg.path / "host").symlink_to("/")
        (leg.path / "self").symlink_to(".")
        assert touched_files(leg).files == ("host", "self", "src", "src/a.py")
        assert SECRET not in capture_diff(leg).text
        assert everything(repo, leg) == ()
        listing = run_git(repo, "ls-tree", "-r", leg.branch or "").splitlines()
        assert [row.split()[0] for row in listing if row.split("\t")[1] in {"src", "host", "self"}] == ["120000"] * 3
        assert run_git(repo, "show", f"{leg.branch}:src") == str(outside)

    def test_rules_behind_a_link_are_not_read(self, repo: Path, leg: Worktree, outside: Path) -> None:
        (outside / "rules").write_text("*\n")
        (leg.path / "src/.gitignore").symlink_to(outside / "rules")
        (leg.path / "src/new.py").write_text("x")
        assert "src/new.py" in touched_files(leg).files

    def test_what_a_folder_was_replaced_by_is_not_written_through(
        self, repo: Path, trees: Path, leg: Worktree, outside: Path
    ) -> None:
        """A later leg in a shared folder has work merged: files are written where an agent has been."""
        other = add_branch(repo, trees / "o", "service/job-other", "main")
        (other.path / "src/a.py").write_text("by another leg\n")
        (other.path / "src/b.py").write_text("by another leg\n")
        (other.path / "lib").write_text("by another leg\n")
        (other.path / "readme.md").write_text("by another leg\n")
        commit_all(other, JOB, "x")
        shutil.rmtree(leg.path / "src")
        (leg.path / "src").symlink_to(outside)
        (leg.path / "readme.md").unlink()
        (outside / "hard").write_text(SECRET)
        (leg.path / "readme.md").hardlink_to(outside / "hard")
        (leg.path / "lib").symlink_to(outside)
        (leg.path / ".gitignore").unlink()
        os.mkfifo(leg.path / ".gitignore")
        merged = merge(mark_base(leg.path), ("service/job-other",))
        assert (merged.path / "src/b.py").read_text() == "by another leg\n"
        assert not (merged.path / "src").is_symlink()
        assert sorted(os.listdir(outside)) == ["a.py", "hard"]
        assert (outside / "a.py").read_text() == (outside / "hard").read_text() == SECRET
        assert (merged.path / "lib").read_text() == (merged.path / "readme.md").read_text() == "by another leg\n"

    @pytest.mark.parametrize("name", [".GIT", "src/.git", "git~1", ".git ", ".g\u200cit"])
    def test_names_that_some_file_system_takes_for_git_s_are_left_out(
        self, repo: Path, leg: Worktree, name: str
    ) -> None:
        (leg.path / name).mkdir()
        (leg.path / name / "config").write_text("x")
        shown = name.replace("\u200c", "\\u200c")
        assert everything(repo, leg) == (f"{shown}: a name that git keeps for itself",)
        assert commit_all(leg, JOB, "x") is None

    def test_giant_names_and_depths_end(self, repo: Path, leg: Worktree) -> None:
        (leg.path / ("n" * 255)).write_text("x")
        (leg.path / "bell\a\n").write_text("x")
        here = os.open(leg.path, os.O_RDONLY)
        for _ in range(40):
            os.mkdir("d" * 200, dir_fd=here)
            below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
        remarks = everything(repo, leg)
        assert any(each.endswith("it is nested too deeply") for each in remarks)
        assert "bell\\x07\\n: control characters in its name" in remarks
        assert len(run_git(repo, "ls-tree", "-z", "--name-only", leg.branch or "").split("\0")) == 6
        dispose(repo, leg.path)
        assert not leg.path.exists()

    def test_a_giant_file_is_told_and_what_was_there_stays(
        self, repo: Path, leg: Worktree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("activities.git.work_folder.files_for_commit.LARGEST_FILE", 1 << 20)
        for name in ("readme.md", "core"):
            os.truncate(os.open(leg.path / name, os.O_CREAT | os.O_RDWR), 1 << 40)
        (leg.path / "x").write_text("x")
        remarks = everything(repo, leg)
        assert sorted(each.split(":")[0] for each in remarks) == ["core", "readme.md"]
        assert run_git(repo, "diff", "--name-only", "main", leg.branch or "") == "x"

    @pytest.mark.parametrize(
        "limits", [replace(files_for_commit.WHOLE, files=3), replace(files_for_commit.WHOLE, bytes=100)]
    )
    def test_more_files_or_bytes_than_are_taken_over_are_refused_with_the_way_out(
        self, leg: Worktree, monkeypatch: pytest.MonkeyPatch, limits: files_for_commit.SnapshotLimits
    ) -> None:
        for number in range(3):
            (leg.path / f"{number}.txt").write_text("x")
        look(leg)
        monkeypatch.setattr(worktree_changes, "WHOLE", limits)
        (leg.path / "more.txt").write_text("x" * 200)
        with pytest.raises(RefusedError, match="too many new or changed files to take over") as caught:
            look(leg)
        assert "service job retry <job>" in caught.value.hint
        with (leg.path / ".gitignore").open("a") as rules:
            rules.write("more.txt\n1.txt\n2.txt\n")
        assert [each for each in look(leg).touched if each != ".gitignore"] == ["0.txt"]

    def test_folders_in_more_folders_than_commits_may_have_are_left_out(self, repo: Path, leg: Worktree) -> None:
        levels = walk.MOST_LEVELS - 1
        (leg.path / "/".join("d" * levels)).mkdir(parents=True)
        (leg.path / "/".join("d" * levels) / "there").touch()
        (leg.path / "/".join("d" * levels) / "d").mkdir()
        seen = look(leg)
        assert f"{'d/' * levels}there" in seen.touched
        assert [each.what for each in seen.odd] == ["it is nested too deeply"]
        assert commit_all(leg, "job-1", "x", seen)

    def test_a_folder_without_end_is_given_up(self, leg: Worktree, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("activities.git.work_folder.walk.MOST_ENTRIES", 50)
        for number in range(60):
            (leg.path / f"f{number}").touch()
        with pytest.raises(RefusedError, match="too many files to read"):
            commit_all(leg, JOB, "x")


@pytest.mark.parametrize("what", ["a link", "a pipe"])
def test_a_work_folder_that_was_replaced_as_a_whole_is_not_followed_and_goes(
    repo: Path, leg: Worktree, outside: Path, what: str
) -> None:
    shutil.rmtree(leg.path)
    leg.path.symlink_to(outside) if what == "a link" else os.mkfifo(leg.path)
    with pytest.raises(OSError, match="Not a directory"):
        look(leg)
    assert find(leg.path) is None
    dispose(repo, leg.path)
    assert not os.path.lexists(leg.path)
    assert (outside / "a.py").read_text() == SECRET


def by_force(leg: Worktree) -> None:
    run_git(leg.path, "update-ref", "refs/heads/main", run_git(leg.path, "rev-parse", "HEAD"))


def by_a_branch(leg: Worktree) -> None:
    run_git(leg.path, "checkout", "-q", "-B", "main")


def by_a_ref_file(leg: Worktree) -> None:
    (leg.path / ".git/refs/heads/main").write_text(run_git(leg.path, "rev-parse", "HEAD") + "\n")


@pytest.mark.parametrize("way", [by_force, by_a_branch, by_a_ref_file])
def test_no_branch_of_the_operators_moves_and_its_checkout_stays(
    repo: Path, leg: Worktree, way: Callable[[Worktree], None]
) -> None:
    before = run_git(repo, "for-each-ref"), run_git(repo, "status", "--porcelain=v2", "--branch")
    commit_file(leg.path, "readme.md", "evil\n")
    run_git(leg.path, "tag", "v1")
    way(leg)
    commit_all(leg, JOB, "x")
    after = run_git(repo, "for-each-ref"), run_git(repo, "status", "--porcelain=v2", "--branch")
    ours = [row for row in after[0].splitlines() if "refs/heads/service/" not in row]
    assert ours == [row for row in before[0].splitlines() if "refs/heads/service/" not in row]
    assert after[1] == before[1]
    assert (repo / "readme.md").read_text() == "hello\n"


def test_the_agent_still_sees_every_branch_and_no_password(repo: Path, trees: Path) -> None:
    run_git(repo, "remote", "add", "origin", "https://ann:s3cret@github.com/acme/shop.git")
    run_git(repo, "remote", "add", "other", "ssh://ann:s3cret@example.org/shop.git")
    run_git(repo, "config", "filter.evil.clean", "false")
    run_git(repo, "branch", "service/job-other")
    run_git(repo, "tag", "v1")
    worktree = add_detached(repo, trees / "w", "main")
    config = (worktree.path / ".git/config").read_text()
    assert "s3cret" not in config
    assert "filter" not in config
    assert run_git(worktree.path, "remote", "get-url", "other") == "ssh://ann@example.org/shop.git"
    assert run_git(worktree.path, "remote", "get-url", "origin") == "https://github.com/acme/shop.git"
    assert run_git(worktree.path, "rev-parse", "main", "service/job-other", "v1").split() == [worktree.base] * 3
    assert run_git(worktree.path, "status", "--porcelain") == ""
    assert run_git(worktree.path, "fsck", "--no-dangling") == ""


@pytest.mark.skipif(os.getuid() != 0, reason="giving files away needs privileges")
def test_files_that_belong_to_somebody_else_by_now_are_read_all_the_same(repo: Path, leg: Worktree) -> None:
    head = commit_file(leg.path, "own.txt", "x")
    (leg.path / "x").write_text("x")
    for folder, folders, names in os.walk(leg.path):
        for name in (".", *folders, *names):
            os.chown(Path(folder, name), 12345, 12345, follow_symlinks=False)
    assert touched_files(leg).files == ("own.txt", "x")
    assert run_git(repo, "rev-parse", f"{commit_all(leg, JOB, 'x')}^") == head
    dispose(repo, leg.path)
