"""Choosing the port to listen on: the wanted one, else the next free one with a notice."""

import socket
from collections.abc import Collection
from dataclasses import dataclass

from workflows.model.errors import ServiceError

LOOPBACK = "127.0.0.1"
_SPAN = 200


class PortTakenError(ServiceError):
    """Another program listens on the port."""

    code = "port_taken"


@dataclass(frozen=True)
class PortChoice:
    """The chosen port and the wanted one."""

    wanted: int
    port: int

    def note(self, what: str) -> str:
        """Return a sentence if the chosen port is not the wanted one, else nothing."""
        if self.wanted in (0, self.port):
            return ""
        return f"port {self.wanted} is taken; {what} listens on {self.port}"


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Return whether no process listens on the port. Ports in TIME_WAIT count as free, as they do for servers."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def choose_port(
    wanted: int, what: str, *, strict: bool = False, avoid: Collection[int] = (), host: str = LOOPBACK
) -> PortChoice:
    """Choose the wanted port or the next free one; 0 asks for any. `strict` refuses instead of moving on."""
    if wanted == 0:
        return PortChoice(0, _any_port(avoid))
    if strict:
        if wanted in avoid or not is_free(wanted, host):
            raise port_in_use(wanted, what)
        return PortChoice(wanted, wanted)
    for port in range(wanted, min(wanted + _SPAN, 65_536)):
        if port not in avoid and is_free(port, host):
            return PortChoice(wanted, port)
    raise PortTakenError(
        f"no free port for {what} between {wanted} and {wanted + _SPAN - 1}",
        "service daemon start --temporal-port 17233",
    )


def port_in_use(port: int, what: str) -> PortTakenError:
    """Return the refusal for a port that the settings fix."""
    return PortTakenError(
        f"port {port}, fixed for {what}, is taken by another program",
        f"ss -ltnp 'sport = :{port}'  (shows who; stop that program, or choose another port)",
    )


def _any_port(avoid: Collection[int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in avoid:
            return port
