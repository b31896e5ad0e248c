"""Push a branch of the service to the repository on GitHub: only as a fast-forward, without the checkout's
configuration (ruling L9).

Pushes start from an empty repository that borrows the objects of the checkout.
"""

import base64
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from activities.git import remotes
from activities.git.command import GitError, git, printable
from activities.git.registered_repository import borrower
from activities.redaction.redact import redact_text
from workflows.github.facts import OUR_BRANCHES
from workflows.github.repository_name import github_of_remote, host_of, remote_of
from workflows.model.errors import RefusedError

PUSH_SECONDS = 120.0
_BEHIND = ("(fetch first)", "(non-fast-forward)")
_DECLINED = ("declined)", "protected", "GH006", "GH013")


@dataclass(frozen=True)
class Destination:
    """The URL to push to, and the address that the token may be sent to."""

    url: str
    web: str
    token: str = field(default="", repr=False)

    @property
    def printable_url(self) -> str:
        """Return the URL as printable text."""
        return printable(self.url)

    def clean(self, text: str) -> str:
        """Remove secrets from git's output."""
        basic = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        for secret in (self.token, basic) if self.token else ():
            text = text.replace(secret, "[redacted]")
        return redact_text(text)


def destination(repo: Path, github: str, web: str, token: str) -> Destination:
    """Find the checkout's remote of a repository on GitHub, without the credentials in its URL.

    Over https, return GitHub's own URL and not the remote's, since the token is sent there.
    """
    host = host_of(web)
    known = remotes.remotes(repo)
    name = remote_of(known, github, host)
    if name is None:
        add = f"git -C {printable(str(repo))} remote add origin {web}/{github}.git"
        raise RefusedError(f"{printable(str(repo))} has no remote to push {github} to", add)
    url = known[name].strip()
    if "://" not in url and ":" not in url.partition("/")[0]:
        return Destination(str(repo / url), web)
    if _scheme(url) in {"http", "https"} and github_of_remote(url, host).lower() == github.lower():
        return Destination(f"{web.rstrip('/')}/{github}.git", web, token)
    return Destination(_without_password(url), web)


def push(repo: Path, commit: str, branch: str, to: Destination) -> None:
    """Push the commit to the branch, never by force. Idempotent."""
    if not branch.startswith(OUR_BRANCHES) or ".." in branch:
        raise RefusedError(
            f"{branch} is not a branch of the service: only {OUR_BRANCHES}... is pushed", "service job branches JOB"
        )
    options = ("--quiet", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no", "--no-force")
    env = remotes.environment(to.token or None, to.web)
    try:
        with borrower(repo) as folder:
            for advice in ("pushUpdateRejected", "pushFetchFirst", "pushNonFFCurrent", "pushNonFFMatching"):
                git(folder, "config", f"advice.{advice}", "false")
            git(folder, "push", *options, "--", to.url, f"{commit}:refs/heads/{branch}", env=env, seconds=PUSH_SECONDS)
    except GitError as error:
        raise _why(repo, branch, to, error) from None


def _why(repo: Path, branch: str, to: Destination, error: GitError) -> Exception:
    """Turn git's error into one with advice, if the cause is known."""
    output, where = to.clean(error.output), f"git -C {printable(str(repo))}"
    if any(mark in output for mark in _BEHIND):
        message = f"somebody else pushed to {branch} at {to.printable_url}: it has commits that are not in this work"
        return RefusedError(message, f"{where} fetch {to.printable_url} {branch}")
    if "[remote rejected]" in output and any(mark in output for mark in _DECLINED):
        return RefusedError(f"{to.printable_url} refuses {branch}: {output}", f"{where} ls-remote {to.printable_url}")
    return GitError(repo, ("push", to.printable_url, branch), error.returncode, output)


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme.lower()
    except ValueError:
        return ""


def _without_password(url: str) -> str:
    """Remove the password from a URL, and keep the user only for protocols other than http (ssh needs it)."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise RefusedError("the remote's address cannot be read", "git remote -v") from None
    user, at, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0] if parts.scheme.lower() not in {"http", "https"} else ""
    return parts._replace(netloc=f"{name}@{host}" if name else host).geturl() if at else url
