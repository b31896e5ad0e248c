"""Real repositories, made by the user's git and not by the service."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{part}": "ann@x" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")},
}
Git = Callable[..., str]


def run_git(where: Path, *arguments: str, stdin: str = "") -> str:
    """Run git as a person or an agent does."""
    command = ["git", "-C", str(where), "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, env=ENV, check=True, capture_output=True, input=stdin.encode())
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def make_repository(path: Path, **files: str) -> Path:
    """Make a repository with one commit."""
    path.mkdir(parents=True)
    run_git(path, "init", "-q", "-b", "main")
    for name, content in {"readme.md": "hello\n", **files}.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content)
    run_git(path, "add", "-A")
    run_git(path, "commit", "-q", "-m", "start")
    return path


def commit_file(where: Path, name: str, content: str, message: str = "change") -> str:
    """Add a commit, and return its id."""
    (where / name).parent.mkdir(parents=True, exist_ok=True)
    (where / name).write_text(content)
    run_git(where, "add", "-A")
    run_git(where, "commit", "-q", "-m", message)
    return run_git(where, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Make a repository with one commit on main."""
    return make_repository(tmp_path / "repo", **{"src/a.py": "a\n", ".gitignore": "*.log\nbuild/\n"})


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """Return the folder for worktrees."""
    return tmp_path / "worktrees"
