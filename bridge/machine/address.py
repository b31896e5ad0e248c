"""The bridge's listening address: loopback unless the settings allow remote access (spec: Authentication 4)."""

import errno
import ipaddress
import re
import socket
from dataclasses import dataclass

from activities.settings.model import BridgeSection
from bridge.machine.ports import port_in_use
from workflows.model.errors import RefusedError, UsageError

_FORM = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<name>[^\[\]:/\s]+))?(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class Address:
    """A host and a port; port 0 takes any."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach the address. No host name but `localhost` counts."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


def choose_address(settings: BridgeSection, addr: str | None, *, allow_remote: bool) -> Address:
    """Return the address given by the option, else by the settings. Refuse one that other machines can reach, unless
    that is allowed.
    """
    address = _parse(addr or "", settings)
    if not address.is_loopback and not allow_remote and not settings.allow_remote:
        raise RefusedError(
            f"{address} can be reached from other machines, and the token would travel in clear text",
            "--allow-remote, or [bridge].allow_remote = true  (behind a firewall or a TLS proxy)",
        )
    return address


def bind(address: Address) -> socket.socket:
    """Open a socket that listens on the address, or raise an error with the reason."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family, backlog=512)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise port_in_use(address.port, "the bridge") from None
        raise UsageError(f"the bridge cannot listen on {address}: {error.strerror}", "--addr 127.0.0.1:8791") from None
    # Connections inherit this. Without it the body of each answer waits for the head's acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(listening: socket.socket) -> Address:
    """Return the address a socket listens on."""
    host, port, *_ = listening.getsockname()
    return Address(host, port)


def _parse(text: str, settings: BridgeSection) -> Address:
    bare = text or settings.addr
    try:
        return Address(str(ipaddress.ip_address(bare)), settings.port)  # an IPv6 address without brackets
    except ValueError:
        match = _FORM.fullmatch(bare)
    port = int(match["port"]) if match and match["port"] else settings.port
    if match is None or port > 65_535:
        raise UsageError(f"{bare!r} is not an address", "--addr HOST, HOST:PORT, :PORT or [IPV6]:PORT")
    return Address(match["v6"] or match["name"] or settings.addr, port)
