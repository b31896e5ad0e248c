"""The pull request or issue that a tree belongs to, and the commit it starts from (rulings L1, O1)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Repo
from bridge.operations.service import Service
from workflows.model.errors import Commands
from workflows.model.workers import UNRESOLVED
from workflows.policy import binding_words

if TYPE_CHECKING:
    from activities.host.base import BoundWork
    from workflows.model.rows import JobRecord
    from workflows.pipeline.rows import RunRecord


async def bind(
    service: Service,
    repo: Repo,
    pull_request: int | None,
    issue: int | None,
    token: str | None = None,
    base: str | None = None,
) -> "BoundWork":
    """Return the binding of new work, with its base commit; a pull request's head and text are fetched from GitHub.

    If the remote does not answer, the base of work without a pull request is determined by its first job, which waits
    for the remote.
    """
    from activities.git.hub import HubAwayError
    from activities.host import checkouts
    from activities.host.base import bound, resolve_base

    settings = service.settings

    def look() -> "BoundWork":
        try:
            here = checkouts.fresh(service, repo)
        except HubAwayError:
            if pull_request is not None or base is not None:
                raise
            bare = bound(repo, settings.host, None, issue, token, settings.github.web)
            return replace(describing(service, token)(bare), base=UNRESOLVED)
        bare = bound(here, settings.host, pull_request, issue, token, settings.github.web)
        binding = resolve_base(describing(service, token)(bare), here, settings.host, base)
        if here.host == settings.host:
            try:
                checkouts.share(service, here, binding.base)
            except HubAwayError as away:
                only = f"the work would begin from {binding.base[:12]}, which is only on this host: {away.message}"
                raise HubAwayError(only, Commands(away.hint, "--base REF, which the remote has")) from None
        return binding

    return await asyncio.to_thread(look)


def describing(service: Service, token: str | None) -> "Callable[[BoundWork], BoundWork]":
    """Return a function that adds title and text of the pull request or issue from GitHub; None without a token."""

    def describe(binding: "BoundWork") -> "BoundWork":
        if not token or not binding.github:
            return binding
        from activities.github import descriptions  # its libraries are slow to import

        return descriptions.describe(binding, service.store, service.artifacts, service.settings.github.api_url, token)

    return describe


@dataclass(frozen=True)
class Belonging:
    """The pull request or issue of a job or a run, for people. All fields are empty if there is neither."""

    what: str = ""
    address: str = ""
    """Its address on GitHub; empty where that is unknown."""

    def __str__(self) -> str:
        return f"{self.what} ({self.address})" if self.address else self.what


NOTHING = Belonging()


def belonging(service: Service, row: "JobRecord | RunRecord") -> Belonging:
    """Return the pull request or issue of a job or a run."""
    if row.pull_request is None and row.issue is None:
        return NOTHING
    repo, web = repo_rows.get(service.store, row.repo), service.settings.github.web
    github = repo.github if repo else ""
    return Belonging(
        binding_words.in_words(row.pull_request, row.issue, github),
        binding_words.address(github, row.pull_request, row.issue, web),
    )
