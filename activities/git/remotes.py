"""Where a repository is also: its remotes, and how git speaks to them, which is never as a repository may wish.

A repository's own configuration names remotes; it names no program that is run for them, no helper for passwords.
"""

import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from activities.git.command import GitError, git, more_config

PROTOCOLS = "https:http:ssh:file"
PASSED = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
)
"""What of our own environment says how other machines are reached."""

_SSH = "ssh -o BatchMode=yes -o ConnectTimeout=15"
_URL = (r"^remote\..*\.url$", "remote.", ".url")


def remotes(repo: Path) -> dict[str, str]:
    """The address of every remote by its name, as the repository's configuration has it."""
    pattern, front, back = _URL
    try:
        found = git(repo, "config", "--null", "--get-regexp", pattern)
    except GitError:
        return {}  # there is none
    known: dict[str, str] = {}
    for entry in found.decode("utf-8", "surrogateescape").split("\0"):
        key, _, url = entry.partition("\n")
        if key:
            known.setdefault(key.removeprefix(front).removesuffix(back), url)
    return known


def environment(token: str | None, web: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """How git is run to speak to another machine: it asks nobody, and only `web` is ever shown the token."""
    passed = {name: environ[name] for name in PASSED if name in environ}
    safe = {"GIT_ALLOW_PROTOCOL": PROTOCOLS, "GIT_SSH_COMMAND": _SSH, "GIT_ASKPASS": "", "SSH_ASKPASS": ""}
    return passed | safe | more_config({"core.logAllRefUpdates": "always"} | _credentials(token, web))


def without_credentials(url: str) -> str:
    """An address as it may be shown: without the user where that may be a token, and never with a password."""
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
    """Redirections are not followed: git would show the header to whomever it is sent to."""
    if not token:
        return {}
    basic = b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        f"http.{web.rstrip('/')}/.extraHeader": f"Authorization: Basic {basic}",
        "http.followRedirects": "false",
    }
