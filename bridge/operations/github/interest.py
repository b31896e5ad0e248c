"""The repositories whose comments have to be polled now, by their names on GitHub."""

from activities.store.github import threads
from activities.store.registry import repos
from activities.store.registry.repos import Repo
from bridge.operations.service import Service

STARTING = frozenset({"ask", "review", "implement"})
"""Commands that need no tree: while one is allowed, comments in every repository are polled."""


def served(service: Service) -> list[Repo]:
    """Return the registered repositories that have a GitHub name which `[github].repos` allows."""
    wanted = service.settings.github.repos
    return [repo for repo in repos.every(service.store) if repo.github and (not wanted or repo.name in wanted)]


def of_interest(service: Service) -> set[str]:
    """Return the repositories with an open tree or a pull request whose head is checked.

    All are returned while comments may start work; those with a blocked tree too while comments may retry.
    """
    found = {each.github for each in threads.open_ones(service.store)}
    if STARTING & {*service.settings.github.commands}:
        found |= {repo.github for repo in served(service)}
    if "retry" in service.settings.github.commands:
        found |= {each.github for each in threads.blocked_ones(service.store)}
    if service.settings.github.check:
        found |= {each.github for each in threads.watched(service.store)}
    return found
