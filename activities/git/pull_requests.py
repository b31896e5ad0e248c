"""Heads of pull requests, fetched into references of the service's own (ruling L1)."""

from pathlib import Path

from activities.git.branches import commit
from activities.git.command import git
from workflows.model.errors import NotFoundError


def reference(number: int) -> str:
    """Where the head of a pull request is kept."""
    return f"refs/service/pull/{number}"


def known_head(repo: Path, number: int) -> str | None:
    """The head as it was when it was last fetched."""
    return commit(repo, reference(number))


def fetch_head(repo: Path, remote: str, number: int, token: str | None = None) -> str:
    """The head of a pull request as it is now; its commits are in the repository afterwards."""
    where = reference(number)
    git(repo, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote, f"+refs/pull/{number}/head:{where}")
    head = commit(repo, where)
    if head is None:
        raise NotFoundError(f"pull request {number} has no head on {remote}", f"git -C {repo} ls-remote {remote}")
    return head
