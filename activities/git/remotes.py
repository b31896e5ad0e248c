"""A repository's remotes, and git's environment to reach them.

A repository's own configuration names remotes, but no program that is run for them, and no helper for passwords.
"""

import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from activities.git.command import PROTOCOLS, SSH_OPTIONS, GitError, git, more_config

PASSED = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
)
"""Environment variables of the service that say how to reach other machines."""

_SSH = f"ssh {SSH_OPTIONS}"
_URL = (r"^remote\..*\.url$", "remote.", ".url")


def remotes(repo: Path) -> dict[str, str]:
    """Return the URL of every remote by name, from the repository's configuration."""
    pattern, front, back = _URL
    try:
        listing = git(repo, "config", "--null", "--get-regexp", pattern)
    except GitError:
        return {}  # there are no remotes
    known: dict[str, str] = {}
    for entry in listing.decode("utf-8", "surrogateescape").split("\0"):
        key, _, url = entry.partition("\n")
        if key:
            known.setdefault(key.removeprefix(front).removesuffix(back), url)
    return known


def environment(token: str | None, web: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Build git's environment to speak to another machine: it never prompts, and only `web` gets the token."""
    passed = {name: environ[name] for name in PASSED if name in environ}
    safe = {"GIT_ALLOW_PROTOCOL": PROTOCOLS, "GIT_SSH_COMMAND": _SSH, "GIT_ASKPASS": "", "SSH_ASKPASS": ""}
    return passed | safe | more_config({"core.logAllRefUpdates": "always"} | _credentials(token, web))


def without_credentials(url: str) -> str:
    """Return a URL to show: without a password, and without the user of http URLs, which may be a token."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url
    name = "" if parts.scheme in ("http", "https") else user.partition(":")[0]
    return parts._replace(netloc=f"{name}@{host}" if name else host).geturl()


def _credentials(token: str | None, web: str) -> dict[str, str]:
    """Return the settings that send the token. Redirections are not followed: git would send the header to any
    target.
    """
    if not token:
        return {}
    basic = b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        f"http.{web.rstrip('/')}/.extraHeader": f"Authorization: Basic {basic}",
        "http.followRedirects": "false",
    }
