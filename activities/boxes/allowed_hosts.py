"""The hosts a box may connect to, and the IP addresses that they may have (ruling N2).

Names are parsed strictly, so that the compared text is the name that is looked up. Addresses of this machine are
refused; a pattern allows public addresses only.
"""

import errno
import fcntl
import ipaddress
import os
import re
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
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
    """Split `host` or `host:port`. For a text of any other form, the host is empty."""
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
class HostEntry:
    """An allow-list entry: a host or a pattern of names."""

    host: str
    """A name, an address, `*.name` or `*`."""
    port: int | None = None

    @classmethod
    def read(cls, text: str) -> "HostEntry":
        """Read an entry of the settings. Raise ValueError if it is invalid."""
        host, port = _parts(text)
        under = host.removeprefix("*.")
        name = ANY if host == ANY else _host(under)
        if name is None or (under != host and _NUMBER.fullmatch(name)):
            raise ValueError(f"{text!r} is not a host: write {FORMS}")
        return cls(name if under == host else f"*.{name}", port)

    @property
    def is_pattern(self) -> bool:
        """Return whether the entry is a wildcard: `*.name` or `*`."""
        return self.host.startswith(ANY)

    def lets_through(self, target: Target) -> bool:
        """Return whether the entry allows the target's host and port."""
        if target.port not in (USUAL_PORTS if self.port is None else (self.port,)):
            return False
        if self.host == ANY:
            return True
        return target.host.endswith(self.host[1:]) if self.is_pattern else target.host == self.host


_read = lru_cache(256)(HostEntry.read)


def matching(target: Target, entries: Iterable[str]) -> HostEntry | None:
    """Return the entry that allows the target; entries without a pattern come first."""
    allowing = [entry for entry in map(_read, entries) if entry.lets_through(target)]
    return min(allowing, key=lambda entry: entry.is_pattern, default=None)


def is_local_name(host: str) -> bool:
    """Return whether a name is reserved for this machine, its network or its cloud."""
    return f".{host}".endswith(_LOCAL_NAMES)


Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NEVER = (
    *("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "fe80::/10", "ff00::/8"),
    *("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "2001::/32", "2002::/16"),
    *("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::254/128"),
)
"""Addresses that no host may have: this machine's, link-local, and multicast; IPv6 addresses that embed an IPv4 address
(compatible, mapped, translated, Teredo, 6to4); and the metadata services of clouds (Alibaba, Azure, Oracle, Amazon;
most clouds use 169.254.169.254).
"""

_NOT_PUBLIC = (
    *("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
    *("192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "3fff::/20"),
)
"""Addresses of private networks. Of IPv6, only 2000::/3 is public."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

RTM_GETROUTE, NLM_F_REQUEST, NLMSG_ERROR = 26, 1, 2
RTM_F_FIB_MATCH = 0x2000
RTN_UNICAST, RTPROT_KERNEL, RTA_DST, RTA_OIF = 1, 2, 1, 4
RTA_GATEWAYS = {5, 9, 18, 30}
"""One gateway, several, one of the other address family, a next-hop group."""

SIOCGIFFLAGS, IFF_POINTOPOINT = 0x8913, 0x10
_MESSAGE, _HEADER, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=8BI"), struct.Struct("=HH")


class Hop(Enum):
    """The next machine on the way to an address."""

    NONE = auto()
    """No next machine: the address is this machine's own, or multicast."""
    NEIGHBOUR = auto()
    """The machine that has the address, in a network of this machine."""
    ROUTER = auto()
    """Another machine, or unknown."""


def is_refused(address: str, *, written_out: bool) -> bool:
    """Return whether a host may not have this address. Check at each connection: a machine's addresses change.

    A host that an entry names in full may be in a local network. Services of this machine need an entry with 127.0.0.1
    instead.
    """
    where = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(where, ipaddress.IPv6Address) and where in _NAT64:  # NAT64: all of IPv4
        return is_refused(str(ipaddress.IPv4Address(where.packed[-4:])), written_out=written_out)
    hop = next_hop(where)
    if hop is Hop.NONE or _is_in(where, _NEVER):
        return True
    return not written_out and (hop is Hop.NEIGHBOUR or _is_in(where, _NOT_PUBLIC))


def _is_in(where: Address, networks: tuple[str, ...]) -> bool:
    return any(where in ipaddress.ip_network(network) for network in networks)


def next_hop(address: Address) -> Hop:
    """Ask the kernel for the route to this address; the kernel knows all interfaces.

    A route without a gateway leads to a neighbour, unless it is the default route, or one into a tunnel.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    wanted = _HEADER.pack(family, address.max_prefixlen, 0, 0, 0, 0, 0, 0, RTM_F_FIB_MATCH)
    wanted += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(address.packed), RTA_DST) + address.packed
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as kernel:
        kernel.send(_MESSAGE.pack(_MESSAGE.size + len(wanted), RTM_GETROUTE, NLM_F_REQUEST, 1, 0) + wanted)
        answer = kernel.recv(65_536)
    _, kind, *_ = _MESSAGE.unpack_from(answer)
    if kind == NLMSG_ERROR:
        number = -struct.unpack_from("=i", answer, _MESSAGE.size)[0]
        if number in (errno.ENETUNREACH, errno.EHOSTUNREACH):
            return Hop.ROUTER
        raise OSError(number, f"cannot find the route to {address}: {os.strerror(number)}")
    _, prefix, _, _, _, made_by, _, kind, _ = _HEADER.unpack_from(answer, _MESSAGE.size)
    attributes = dict(_attributes(answer[_MESSAGE.size + _HEADER.size :]))
    if kind != RTN_UNICAST:
        return Hop.NONE
    if prefix == 0 or RTA_GATEWAYS & attributes.keys():
        return Hop.ROUTER
    tunnel = made_by != RTPROT_KERNEL and _is_point_to_point(*struct.unpack("=I", attributes[RTA_OIF]))
    return Hop.ROUTER if tunnel else Hop.NEIGHBOUR


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        yield kind, data[_ATTRIBUTE.size : length]
        data = data[max(_ATTRIBUTE.size, (length + 3) & ~3) :]


def _is_point_to_point(interface: int) -> bool:
    asked = struct.pack("16s24x", socket.if_indextoname(interface).encode())
    with socket.socket() as any_socket:
        flags = fcntl.ioctl(any_socket, SIOCGIFFLAGS, asked)
    return bool(struct.unpack_from("=H", flags, 16)[0] & IFF_POINTOPOINT)
