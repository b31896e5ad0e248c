"""The pull request, issue and base commit of a tree or run, checked and resolved (rulings L1, O1)."""

import re
import shlex
from dataclasses import dataclass, fields, replace
from pathlib import Path

from activities.git import pull_requests
from activities.git.pull_requests import Source
from activities.git.work_folder import worktrees
from activities.store.registry.repo_rows import Repo
from workflows.model.errors import RefusedError, UsageError
from workflows.model.long_texts import Text
from workflows.model.workers import UNRESOLVED
from workflows.policy import binding_words

LONGEST_REF = 250
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True)
class BoundWork:
    """A pull request or an issue, its GitHub repository, and the commit that work on it starts from."""

    pull_request: int | None = None
    issue: int | None = None
    github: str = ""
    web: str = ""
    """Web address of the repository's GitHub server; empty for github.com."""
    about: Text | None = None
    """Title and text of the pull request or issue, if GitHub was asked."""
    into: str = ""
    """The branch that a pull request goes into, if GitHub was asked."""
    head: str = ""
    """The head commit of a pull request, if the work begins from a different commit."""
    base: str = ""
    """The commit that the work begins from; UNRESOLVED if only the host of the checkout can resolve it."""

    @property
    def fields(self) -> dict[str, int | str | Text | None]:
        """Return the fields of an assignment."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def bound(
    repo: Repo,
    here: str,
    pull_request: int | None,
    issue: int | None,
    token: str | None = None,
    web: str = binding_words.WEB,
) -> BoundWork:
    """Check and resolve the pull request or issue of work on a repository, on the host `here`. Refuse invalid ones.

    The token is sent only to the GitHub server at `web`, to fetch the head of a pull request.
    """
    binding_words.check_numbers(pull_request, issue)
    if pull_request is None and issue is None:
        return BoundWork()
    binding_words.check_github(repo.name, repo.path, repo.github)
    made = BoundWork(pull_request, issue, repo.github, "" if web == binding_words.WEB else web)
    if pull_request is None:
        return made
    if repo.host != here:
        raise RefusedError(f"{repo.elsewhere}: its pull requests are fetched there", f"ssh {repo.host}")
    source = Source(Path(repo.path), repo.github, web)
    return replace(made, base=pull_requests.heads(source, (pull_request,), token)[pull_request])


def resolve_base(binding: BoundWork, repo: Repo, here: str, ref: str | None = None) -> BoundWork:
    """Resolve the commit that the work begins from: `ref`, else a pull request's head, else HEAD (ruling O1).

    HEAD of a checkout on another host is resolved there, by the first job.
    """
    if ref is not None:
        named = _commit_of(repo, here, ref)
        return replace(binding, base=named, head=binding.base if binding.base != named else "")
    if binding.base:
        return binding
    return replace(binding, base=worktrees.tip(Path(repo.path)) if repo.host == here else UNRESOLVED)


def _commit_of(repo: Repo, here: str, ref: str) -> str:
    if not ref.strip() or len(ref) > LONGEST_REF:
        raise UsageError(f"the base {ref[:LONGEST_REF]!r} names no commit", "--base REF: a branch, a tag or a commit")
    if repo.host == here:
        return worktrees.base_of(Path(repo.path), ref)
    if _COMMIT.fullmatch(ref):
        return ref
    command = f"git -C {shlex.quote(repo.path)} rev-parse --verify {shlex.quote(ref + '^{commit}')}"
    hint = f"ssh {repo.host} {shlex.quote(command)}, and give what it prints as --base"
    raise RefusedError(f"{repo.elsewhere}: give the base as a whole commit id, not as {ref!r}", hint)
