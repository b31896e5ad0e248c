"""The repositories whose comments matter now, by their names on GitHub."""

from activities.store.github import threads
from activities.store.registry import repos
from activities.store.registry.repos import Repo
from bridge.operations.service import Service

STARTING = frozenset({"ask", "review", "implement"})
"""Commands that need no tree: while one is allowed, every repository that is served can be commanded."""


def served(service: Service) -> list[Repo]:
    """The registered repositories that have a name there, as far as `[github].repos` allows."""
    wanted = service.settings.github.repos
    return [repo for repo in repos.every(service.store) if repo.github and (not wanted or repo.name in wanted)]


def of_interest(service: Service) -> set[str]:
    """Those with a tree that is not over; with a pull request whose head is checked; all, while comments start work.

    Where comments may retry, those with a blocked tree too.
    """
    found = {each.github for each in threads.open_ones(service.store)}
    if STARTING & {*service.settings.github.commands}:
        found |= {repo.github for repo in served(service)}
    if "retry" in service.settings.github.commands:
        found |= {each.github for each in threads.blocked_ones(service.store)}
    if service.settings.github.check:
        found |= {each.github for each in threads.watched(service.store)}
    return found
