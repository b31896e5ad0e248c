"""The GitHub repository of a checkout, derived from its remotes' addresses (ruling L1)."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

HOST = "github.com"
SAME_HOST = ("", "www.", "ssh.")
"""Prefixes of host names that also mean GitHub: `ssh.` is for ssh over the port of https."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_SCP = re.compile(r"(?:[^/@:\s]+@)?(?P<host>[^/@:\s]+):(?!//)(?P<path>.+)")
_SCHEMES = ("https", "http", "ssh", "git", "git+ssh", "ssh+git")


def is_github_name(text: str) -> bool:
    """Return whether the text is a valid OWNER/NAME of GitHub."""
    return _NAME.fullmatch(text) is not None


def host_of(web: str) -> str:
    """Return the host name of the remotes, derived from the web address of the repositories."""
    return urlsplit(web).hostname or ""


def github_of_remote(url: str, host: str = HOST) -> str:
    """Return OWNER/NAME of a remote's address on this host; empty for another host or an invalid path."""
    where, path = _parts(url.strip())
    if where.lower() not in {front + host.lower() for front in SAME_HOST}:
        return ""
    name = path.strip("/").removesuffix(".git")
    return name if is_github_name(name) else ""


def github_of_remotes(remotes: Mapping[str, str], host: str = HOST) -> str:
    """Return OWNER/NAME of the first remote that has one: `origin`, then the others by name."""
    in_order = sorted(remotes, key=lambda name: (name != "origin", name))
    return next((github for name in in_order if (github := github_of_remote(remotes[name], host))), "")


def remote_of(remotes: Mapping[str, str], github: str, host: str = HOST) -> str | None:
    """Return the remote of a GitHub repository, else an `origin` without a GitHub name, else None.

    An `origin` with another GitHub name is never used: its pull requests have the same numbers but are different ones.
    """
    names = {name: github_of_remote(url, host).lower() for name, url in remotes.items()}
    own = (name for name in sorted(names) if names[name] == github.lower())
    return next(own, "origin" if names.get("origin") == "" else None)


def _parts(url: str) -> tuple[str, str]:
    """Return the host and the path of a remote's address."""
    if "://" not in url:
        short = _SCP.fullmatch(url)
        return (short["host"], short["path"]) if short else ("", "")
    try:
        parts = urlsplit(url)
        return (parts.hostname or "", parts.path) if parts.scheme.lower() in _SCHEMES else ("", "")
    except ValueError:
        return "", ""
