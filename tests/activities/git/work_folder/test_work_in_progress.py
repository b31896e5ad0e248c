"""Snapshots of a running job's work folder: whole, cheap, and harmless whatever is in the folder (ruling Q6)."""

import os
import stat
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from activities.git import git_branches, plain_files
from activities.git.work_folder import work_in_progress
from activities.git.work_folder.commit import hand_over
from activities.git.work_folder.service_git_dir import side_of
from activities.git.work_folder.work_in_progress import LIMITS, lay_out, take
from activities.git.work_folder.worktrees import Worktree, add_branch
from tests.activities.git.conftest import make_repository, run_git

JOB = "job-0123456789ab"


@pytest.fixture
def folder(repo: Path, trees: Path) -> Worktree:
    return add_branch(repo, trees / "job", f"service/{JOB}", "main")


def files(worktree: Worktree, commit: str) -> dict[str, str]:
    """Return the files of a snapshot, with their modes."""
    rows = run_git(side_of(worktree.path), "ls-tree", "-r", "-z", commit).split("\0")
    return {name: row.split()[0] for row, _, name in (row.partition("\t") for row in rows if row)}


def shown(worktree: Worktree, commit: str, name: str) -> str:
    return run_git(side_of(worktree.path), "show", f"{commit}:{name}")


@pytest.mark.ruling("Q6")
def test_a_snapshot_has_every_file_but_ignored_ones_and_touches_nothing_of_the_agent(
    folder: Worktree, repo: Path
) -> None:
    path = folder.path
    (path / "readme.md").write_text("changed\n")
    (path / "src" / "a.py").unlink()
    (path / "new").mkdir()
    (path / "new" / "b.sh").write_text("b\n")
    (path / "new" / "b.sh").chmod(0o755)
    (path / "link").symlink_to("/etc/passwd")
    (path / "debug.log").write_text("ignored\n")
    run_git(path, "add", "new")
    before = (path / ".git" / "index").read_bytes(), run_git(path, "status", "--porcelain")
    made = take(folder, JOB, 1)
    assert files(folder, made.commit) == {
        ".gitignore": "100644",
        "link": "120000",
        "new/b.sh": "100755",
        "readme.md": "100644",
    }
    assert shown(folder, made.commit, "link") == "/etc/passwd"
    assert run_git(side_of(path), "rev-parse", f"{made.commit}^") == folder.base
    assert ((path / ".git" / "index").read_bytes(), run_git(path, "status", "--porcelain")) == before
    assert git_branches.tip(repo, f"service/{JOB}") == folder.base
    assert git_branches.commit(repo, made.commit) is None


@pytest.mark.ruling("Q6")
def test_an_unchanged_folder_costs_no_reading_and_no_commit(folder: Worktree, monkeypatch: pytest.MonkeyPatch) -> None:
    assert take(folder, JOB, 1).commit == ""
    (folder.path / "readme.md").write_text("changed\n")
    (folder.path / "new.txt").write_text("new\n")
    os.utime(folder.path / "src" / "a.py")
    first = take(folder, JOB, 1)
    opened: list[str] = []
    file_below = plain_files.file_below

    def spied(folder: int, name: str, most: int) -> AbstractContextManager[int, bool | None]:
        opened.append(name)
        return file_below(folder, name, most)

    monkeypatch.setattr(plain_files, "file_below", spied)
    assert take(folder, JOB, 1) == first
    assert not {"new.txt", "readme.md", "a.py"} & {*opened}
    (folder.path / "new.txt").write_text("more\n")
    second = take(folder, JOB, 1)
    assert ("new.txt" in opened, "readme.md" in opened) == (True, False)
    assert shown(folder, second.commit, "new.txt") == "more"
    assert shown(folder, second.commit, "readme.md") == "changed"
    (folder.path / "readme.md").write_text("hello\n")
    (folder.path / "new.txt").unlink()
    third = take(folder, JOB, 1)
    assert files(folder, third.commit) == files(folder, folder.base)


@pytest.mark.ruling("Q6")
def test_what_is_too_large_or_no_file_is_left_out_and_told(folder: Worktree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder.path
    with (path / "huge.bin").open("wb") as huge:
        huge.truncate(2 << 30)
    os.mkfifo(path / "pipe")
    run_git(path, "init", "-q", "inner")
    (path / "inner" / "x").write_text("x\n")
    (path / "small.txt").write_text("small\n")
    made = take(folder, JOB, 1)
    assert files(folder, made.commit).keys() == {".gitignore", "readme.md", "small.txt", "src/a.py"}
    assert made.left_out == ("huge.bin: left out, 2.1 GB", "pipe: a named pipe", "inner: a repository")
    monkeypatch.setattr(work_in_progress, "LIMITS", LIMITS.__class__(files=2, bytes=8, largest=8, leaves_out=True))
    for name in ("s1", "s2"):
        (path / name).write_text("123456")
    again = take(folder, JOB, 1)
    assert len(files(folder, again.commit).keys() & {"s1", "s2"}) <= 1
    assert any(each.startswith("s") and "left out" in each for each in again.left_out)


@pytest.mark.ruling("Q6", "N3")
def test_hooks_filters_and_settings_of_the_folder_are_never_run(folder: Worktree, tmp_path: Path) -> None:
    path, mark = folder.path, tmp_path / "ran"
    evil = path / ".git" / "hooks"
    evil.mkdir()
    for name in ("post-commit", "pre-commit", "pre-push", "post-checkout", "reference-transaction"):
        (evil / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (evil / name).chmod(0o755)
    with (path / ".git" / "config").open("a") as config:
        config.write(
            f'[core]\n\tfsmonitor = touch {mark}\n[filter "x"]\n\tclean = touch {mark}\n\tsmudge = touch {mark}\n'
        )
    (path / ".gitattributes").write_text("* filter=x\n")
    (path / "readme.md").write_text("changed\n")
    made = take(folder, JOB, 1)
    assert shown(folder, made.commit, "readme.md") == "changed"
    assert not mark.exists()


@pytest.mark.ruling("Q6")
def test_a_snapshot_is_laid_out_elsewhere_uncommitted_as_it_was(folder: Worktree, repo: Path, trees: Path) -> None:
    path = folder.path
    (path / "readme.md").write_text("changed\n")
    (path / "src" / "a.py").unlink()
    (path / "new").mkdir()
    (path / "new" / "b.sh").write_text("b\n")
    (path / "new" / "b.sh").chmod(0o755)
    (path / "link").symlink_to("readme.md")
    Path(os.fsdecode(os.fsencode(path) + b"/\xff.txt")).write_text("bytes\n")
    with (path / "huge.bin").open("wb") as huge:
        huge.truncate(2 << 30)
    made = take(folder, JOB, 1)
    hand_over(side_of(path), repo / ".git", made.commit)
    other = add_branch(repo, trees / "other", f"service/{JOB}-attempt2", folder.base)
    for _ in range(2):  # as after a kill
        assert lay_out(other, made.commit) == ("huge.bin: left out, 2.1 GB",)
        assert run_git(other.path, "rev-parse", "HEAD") == folder.base
        assert set(run_git(other.path, "status", "--porcelain", "-uall").splitlines()) == {
            "M readme.md",
            " D src/a.py",
            '?? "\\377.txt"',
            "?? link",
            "?? new/b.sh",
        }
    assert (other.path / "link").readlink() == Path("readme.md")
    assert stat.S_IMODE((other.path / "new" / "b.sh").stat().st_mode) & 0o100
    assert files(other, take(other, JOB, 2).commit) == files(folder, made.commit)


@pytest.mark.ruling("Q6")
def test_a_submodule_stays_as_in_the_commit_and_what_changed_in_it_is_told(repo: Path, trees: Path) -> None:
    inner = make_repository(repo.parent / "inner")
    run_git(repo, "submodule", "add", "-q", str(inner), "lib")
    run_git(repo, "commit", "-q", "-m", "a submodule")
    folder = add_branch(repo, trees / "job", f"service/{JOB}", "main")
    (folder.path / "lib" / "readme.md").write_text("changed\n")
    (folder.path / "new.txt").write_text("new\n")
    made = take(folder, JOB, 1)
    assert files(folder, made.commit)["lib"] == "160000"
    assert made.left_out == ("lib: a repository",)
    assert take(folder, JOB, 1) == made


TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
HOLDS = ".env: it holds a secret"


@pytest.mark.ruling("Q6", "N7")
def test_a_file_with_a_secret_is_left_out_and_named_until_the_secret_is_gone(folder: Worktree) -> None:
    path = folder.path
    (path / ".env").write_text(f"GITHUB_TOKEN={TOKEN}\n")
    (path / "new.txt").write_text("work\n")
    made = take(folder, JOB, 1)
    assert (made.left_out, "new.txt" in files(folder, made.commit)) == ((HOLDS,), True)
    assert ".env" not in files(folder, made.commit)
    assert run_git(side_of(path), "log", "-1", "--format=%B", made.commit).splitlines()[-1] == f"Left-Out: {HOLDS}"
    (path / "more.txt").write_text("more\n")
    assert take(folder, JOB, 1).left_out == (HOLDS,)
    (path / ".env").write_text("GITHUB_TOKEN=\n")
    made = take(folder, JOB, 1)
    assert made.left_out == ()
    assert shown(folder, made.commit, ".env") == "GITHUB_TOKEN="


@pytest.mark.ruling("Q6", "N7")
def test_a_file_that_gets_a_secret_stays_in_the_snapshot_as_it_was(folder: Worktree) -> None:
    (folder.path / "settings.py").write_text("debug = 1\n")
    take(folder, JOB, 1)
    (folder.path / "settings.py").write_text(f"debug = 1\ntoken = '{TOKEN}'\n")
    made = take(folder, JOB, 1)
    assert made.left_out == ("settings.py: it holds a secret",)
    assert shown(folder, made.commit, "settings.py") == "debug = 1"


@pytest.mark.ruling("Q6", "N7")
def test_a_secret_that_the_base_has_too_is_no_reason_to_leave_a_file_out(repo: Path, trees: Path) -> None:
    (repo / "example.env").write_text(f"TOKEN={TOKEN}\n")
    run_git(repo, "add", "example.env")
    run_git(repo, "commit", "-qm", "an example")
    folder = add_branch(repo, trees / "job", f"service/{JOB}", "main")
    (folder.path / "example.env").write_text(f"TOKEN={TOKEN}\nDEBUG=1\n")
    made = take(folder, JOB, 1)
    assert (made.left_out, shown(folder, made.commit, "example.env")) == ((), f"TOKEN={TOKEN}\nDEBUG=1")


@pytest.mark.ruling("Q6", "N7")
def test_what_one_snapshot_cannot_search_waits_for_the_next(folder: Worktree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_in_progress, "MOST_SEARCHED", 10)
    (folder.path / "a.txt").write_text("12345678\n")
    (folder.path / "b.txt").write_text("12345678\n")
    assert take(folder, JOB, 1).left_out == ("b.txt: not searched for secrets yet",)
    made = take(folder, JOB, 1)
    assert (made.left_out, {"a.txt", "b.txt"} <= files(folder, made.commit).keys()) == ((), True)


@pytest.mark.ruling("Q3")
def test_ci_files_are_left_out_where_the_snapshot_goes_to_a_branch(folder: Worktree) -> None:
    (folder.path / ".github" / "workflows").mkdir(parents=True)
    (folder.path / ".github" / "workflows" / "x.yml").write_text("on: push\n")
    (folder.path / "new.txt").write_text("work\n")
    made = take(folder, JOB, 1, to_branches=True)
    assert made.left_out == (".github/workflows/x.yml: a CI file, which a forge would run",)
    assert "new.txt" in files(folder, made.commit)
    assert ".github/workflows/x.yml" not in files(folder, made.commit)
