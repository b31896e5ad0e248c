"""The binding of a tree to a pull request or an issue on GitHub, in words (ruling L1)."""

from workflows.model.errors import RefusedError, UsageError
from workflows.policy.storable_rows import LARGEST

WEB = "https://github.com"
"""Default address of GitHub's pages."""


def check_numbers(pull_request: int | None, issue: int | None) -> None:
    """Refuse a pull request and an issue together, and invalid numbers."""
    if pull_request is not None and issue is not None:
        raise UsageError("a task belongs to a pull request or to an issue, not to both", "leave --pr or --issue out")
    for number, what, option in ((pull_request, "a pull request", "--pr"), (issue, "an issue", "--issue")):
        if number is not None and not 0 < number <= LARGEST:
            raise UsageError(f"{number} is not the number of {what}", f"{option} NUMBER")


def check_github(repo: str, path: str, github: str) -> None:
    """Refuse a repository whose GitHub name is unknown."""
    if not github:
        raise RefusedError(
            f"the repository {repo} has no GitHub name: none of its remotes tells one",
            f"service repo add {repo} {path} --github OWNER/NAME",
        )


def in_words(pull_request: int | None, issue: int | None, github: str = "") -> str:
    """Return a binding as `pull request #7 of acme/shop`; empty without a binding."""
    of = f" of {github}" if github else ""
    if pull_request is not None:
        return f"pull request #{pull_request}{of}"
    return f"issue #{issue}{of}" if issue is not None else ""


def sentence(belongs_to: str) -> str:
    """Return the binding as a sentence for prompts."""
    return f"This work belongs to {belongs_to}." if belongs_to else ""


def address(github: str, pull_request: int | None, issue: int | None, web: str = "") -> str:
    """Return the URL of the pull request or issue; empty if the tree has neither, or the repository's GitHub name is
    unknown.
    """
    if not github or (pull_request is None and issue is None):
        return ""
    place = f"pull/{pull_request}" if pull_request is not None else f"issues/{issue}"
    return f"{(web or WEB).rstrip('/')}/{github}/{place}"


def options(pull_request: int | None, issue: int | None) -> str:
    """Return the binding as options of a command that starts work."""
    if pull_request is not None:
        return f" --pr {pull_request}"
    return f" --issue {issue}" if issue is not None else ""


def variables(pull_request: int | None, issue: int | None) -> dict[str, str]:
    """Return the environment variables of the binding; empty without one, so that scripts need no defaults."""
    return {
        "SERVICE_PULL_REQUEST": "" if pull_request is None else str(pull_request),
        "SERVICE_ISSUE": "" if issue is None else str(issue),
    }
