"""Real repositories, made by the user's git and not by the service."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{part}": "ann@x" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")},
    # No look for loose objects to pack after every commit, and no copies of sample hooks in every repository.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_TEMPLATE_DIR": "",
}
Git = Callable[..., str]


def run_git(where: Path, *arguments: str, stdin: str = "") -> str:
    """Run git as a person or an agent does."""
    command = ["git", "-C", str(where), "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, env=ENV, check=True, capture_output=True, input=stdin.encode())
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def make_repository(path: Path, **files: str) -> Path:
    """Make a repository with one commit, of a readme and these files."""
    return repository_of(path, {"readme.md": "hello\n", **files})


def repository_of(path: Path, files: Mapping[str, str]) -> Path:
    """Make a repository with one commit, of these files."""
    made = _repository(tuple(files.items()))
    shutil.copytree(Path(made.name, "repo"), path, symlinks=True)
    return path


@cache
def _repository(files: tuple[tuple[str, str], ...]) -> "TemporaryDirectory[str]":
    """Make the repository of these files once: most tests begin with it, and a copy takes a tenth of the time."""
    folder = TemporaryDirectory(prefix="repository-")
    path = Path(folder.name, "repo")
    path.mkdir()
    run_git(path, "init", "-q", "-b", "main")
    Path(path, ".git", "hooks").mkdir()
    for name, content in files:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content)
    run_git(path, "add", "-A")
    run_git(path, "commit", "-q", "-m", "start")
    return folder


def commit_file(where: Path, name: str, content: str, message: str = "change") -> str:
    """Add a commit, and return its id."""
    (where / name).parent.mkdir(parents=True, exist_ok=True)
    (where / name).write_text(content)
    run_git(where, "add", "-A")
    run_git(where, "commit", "-q", "-m", message)
    return run_git(where, "rev-parse", "HEAD")


def commit_on(where: Path, branch: str, start: str, name: str, content: str) -> None:
    """Make a branch with one commit, by one process and without a checkout."""
    commit = f"committer ann <ann@x> {int(time.time())} +0000\ndata 6\nchange\nfrom {start}\n"
    file = f"M 644 inline {name}\ndata {len(content.encode())}\n{content}\n"
    run_git(where, "fast-import", "--quiet", stdin=f"commit refs/heads/{branch}\n{commit}{file}")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Make a repository with one commit on main."""
    return make_repository(tmp_path / "repo", **{"src/a.py": "a\n", ".gitignore": "*.log\nbuild/\n"})


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """Return the folder for worktrees."""
    return tmp_path / "worktrees"
