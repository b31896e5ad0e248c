"""The hosts a box may connect to (ruling N2). Their allowed addresses are in `addresses`.

Names are parsed strictly, so that the text that is compared is the name that is looked up.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

USUAL_PORTS = (443, 80)
ANY = "*"
FORMS = "name, name:port, *.name, * or 127.0.0.1:port"

_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
"""Names that resolvers take for IPv4 addresses: also 127.1, 0x7f.1, 0177.0.0.1 and 2130706433."""
_WITH_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([1-9][0-9]{0,4}))?")
_LAST_PORT = 65_535

_LOCAL_NAMES = (".localhost", ".local", ".internal")
"""Suffixes of names that belong to the machine, its local network or its cloud, whatever their addresses."""


def _host(text: str) -> str | None:
    """Return a name in lower case, or an address as `ipaddress` writes it; None for anything else.

    IPv6 addresses are in brackets. Names that are not ASCII are refused: they have to be in their `xn--` form.
    """
    host = text.lower()
    try:
        if not text.isascii() or "%" in text:
            return None
        if host.startswith("["):
            return str(ipaddress.IPv6Address(host[1:-1]))
        if _NUMBER.fullmatch(host):
            return str(ipaddress.IPv4Address(host))
    except ValueError:
        return None
    return host if _NAME.fullmatch(host) else None


def _parts(text: str) -> tuple[str, int | None]:
    """Split `host` or `host:port`. The host is empty where the text has another form."""
    parts = _WITH_PORT.fullmatch(text)
    port = int(parts[2]) if parts and parts[2] else None
    return (parts[1], port) if parts and (port or 0) <= _LAST_PORT else ("", None)


@dataclass(frozen=True)
class Target:
    """The host and port that a program asked for."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str, port: int | None = None) -> "Target | None":
        """Read `name:port`, `address:port` or `[address]:port`; without a port, use the default `port` if there is
        one.
        """
        host, given = _parts(text)
        name, number = _host(host), given or port
        return cls(name, number) if name and number else None

    @property
    def authority(self) -> str:
        """Return the host as URLs and headers write it, without its port."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{self.authority}:{self.port}"


@dataclass(frozen=True)
class Entry:
    """An allow-list entry: a host or a pattern of names."""

    host: str
    """A name, an address, `*.name` or `*`."""
    port: int | None = None

    @classmethod
    def read(cls, text: str) -> "Entry":
        """Read an entry of the settings. Raise ValueError if it is invalid."""
        host, port = _parts(text)
        under = host.removeprefix("*.")
        name = ANY if host == ANY else _host(under)
        if name is None or (under != host and _NUMBER.fullmatch(name)):
            raise ValueError(f"{text!r} is no host: write {FORMS}")
        return cls(name if under == host else f"*.{name}", port)

    @property
    def is_pattern(self) -> bool:
        """Return whether the entry also matches hosts that are not written out."""
        return self.host.startswith(ANY)

    def lets_through(self, target: Target) -> bool:
        """Return whether the entry allows the target's host and port."""
        if target.port not in (USUAL_PORTS if self.port is None else (self.port,)):
            return False
        if self.host == ANY:
            return True
        return target.host.endswith(self.host[1:]) if self.is_pattern else target.host == self.host


_read = lru_cache(256)(Entry.read)


def matching(target: Target, entries: Iterable[str]) -> Entry | None:
    """Return the entry that allows the target; entries without a pattern come first."""
    found = [entry for entry in map(_read, entries) if entry.lets_through(target)]
    return min(found, key=lambda entry: entry.is_pattern, default=None)


def is_local_name(host: str) -> bool:
    """Return whether a name is reserved for this machine, its network or its cloud."""
    return f".{host}".endswith(_LOCAL_NAMES)
