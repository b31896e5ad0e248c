"""The part of the system that every box can read: programs, libraries, and files of /etc that are no secrets."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/run/current-system")
"""Folders that every box shows read-only. On most systems some are links into /usr."""

ETC = (
    *("alternatives", "bash.bashrc", "bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("debian_version", "environment", "fonts", "gai.conf", "gitattributes", "gitconfig", "group", "host.conf"),
    *("hostname", "hosts", "inputrc", "java", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "login.defs", "lsb-release", "machine-id", "magic"),
    *("maven", "mime.types", "networks", "nsswitch.conf", "os-release", "passwd", "perl", "pki", "profile"),
    *("profile.d", "protocols", "python3", "python3.11", "python3.12", "python3.13", "redhat-release", "resolv.conf"),
    *("rpc", "services", "shells", "ssl/certs", "ssl/openssl.cnf", "static", "terminfo", "timezone", "xdg"),
)
"""Names in /etc that boxes see: no password hashes, keys of ssh or TLS, scheduled jobs, or settings of services."""

_BELOW = tuple(f"{folder}/" for folder in FOLDERS)


def folders() -> Iterator[Path]:
    """Return the folders that exist."""
    return (Path(path) for path in FOLDERS if os.path.exists(path))


def files() -> Iterator[Path]:
    """Return the files of /etc that exist."""
    return (Path(path) for path in (f"/etc/{name}" for name in ETC) if os.path.exists(path))


def moment() -> int:
    """Return the current second, a cache key with which results are computed at most once a second."""
    return int(time.monotonic())


def is_system(path: Path) -> bool:
    """Return whether every box has this path."""
    return f"{path}/".startswith(_BELOW)
