"""Which hosts a box may speak to, and under which addresses they count."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

USUAL_PORTS = (443, 80)
ANY = "*"


@dataclass(frozen=True)
class Target:
    """A host and a port that a program asked for."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str, port: int | None = None) -> "Target | None":
        """From `host:port` or `[address]:port`, or without a port if there is a usual one."""
        host, colon, said = text.rpartition(":")
        if not colon or text.endswith("]"):
            host, said = text, "" if port is None else str(port)
        host = host.removeprefix("[").removesuffix("]").rstrip(".").lower()
        return cls(host, int(said)) if host and said.isascii() and said.isdigit() and int(said) < 65536 else None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def matching(target: Target, entries: Iterable[str]) -> str | None:
    """The entry that lets the target through: `name`, `name:port`, `*.name`, `*`."""
    return next((entry for entry in entries if _lets_through(entry.lower(), target)), None)


def _lets_through(entry: str, target: Target) -> bool:
    host, colon, port = entry.rpartition(":")
    if not colon or not port.isdigit():
        host, port = entry, ""
    if port and int(port) != target.port:
        return False
    if not port and target.port not in USUAL_PORTS:
        return False
    if host == ANY:
        return True
    return target.host.endswith(host[1:]) if host.startswith("*.") else target.host == host


def counts(address: str, entry: str) -> bool:
    """Whether an address that a name leads to may be spoken to: a pattern never leads into a local network.

    A name that was written out may, but not to this machine, whose services are named by their address.
    """
    where = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(where, ipaddress.IPv6Address) and where.ipv4_mapped:
        where = where.ipv4_mapped
    if where.is_loopback or where.is_link_local or where.is_unspecified or where.is_multicast:
        return False
    return where.is_global or not entry.startswith(ANY)
