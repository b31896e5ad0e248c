"""What a tree or a run belongs to, checked and looked up: a pull request's head is fetched here (ruling L1)."""

from dataclasses import dataclass, replace
from pathlib import Path

from activities.git import pull_requests
from activities.git.pull_requests import Source
from activities.store.repos import Repo
from workflows.model.errors import RefusedError
from workflows.policy import bindings


@dataclass(frozen=True)
class Bound:
    """A pull request or an issue, where it is on GitHub, and the commit that work on it starts from."""

    pull_request: int | None = None
    issue: int | None = None
    github: str = ""
    web: str = ""
    """Where people see that repository; empty: on github.com."""
    base: str = ""
    """The head of the pull request; empty for an issue, whose work starts from the tip."""

    @property
    def fields(self) -> dict[str, int | str | None]:
        """As an assignment has them."""
        numbers: dict[str, int | str | None] = {"pull_request": self.pull_request, "issue": self.issue}
        return numbers | {"github": self.github, "web": self.web, "base": self.base}


def bound(
    repo: Repo,
    here: str,
    pull_request: int | None,
    issue: int | None,
    token: str | None = None,
    web: str = bindings.WEB,
) -> Bound:
    """The binding of work on a repository, seen from the host `here`; refused where it cannot be.

    A token is shown to the GitHub at `web` alone, to fetch the head of a pull request.
    """
    bindings.check_numbers(pull_request, issue)
    if pull_request is None and issue is None:
        return Bound()
    bindings.check_github(repo.name, repo.path, repo.github)
    made = Bound(pull_request, issue, repo.github, "" if web == bindings.WEB else web)
    if pull_request is None:
        return made
    if repo.host != here:
        where = f"the repository {repo.name} is on the host {repo.host}, not here"
        raise RefusedError(f"{where}: its pull requests are fetched there", f"ssh {repo.host}")
    source = Source(Path(repo.path), repo.github, web)
    return replace(made, base=pull_requests.heads(source, (pull_request,), token)[pull_request])
