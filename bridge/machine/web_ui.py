"""The embedded server's web UI: it accepts any Host and Origin, so it listens where no web page can find it, and the
bridge serves it to people with a session (ruling N1).
"""

import secrets
import socket
import sys
from typing import NamedTuple

from bridge.machine.ports import LOOPBACK

PATH = "/ui/temporal"
CODEC = "/ui/codec"
"""The path of the endpoint that decrypts payloads for the web UI's pages."""

VARIABLE = "SERVICE_TEMPORAL_UI"
"""The variable by which the daemon tells the bridge, and no other member, where the web UI listens."""


class Listener(NamedTuple):
    """An address to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def hidden_listener() -> Listener:
    """Choose a random loopback address and a free port of it. macOS has one loopback address only."""
    host = f"127.{'.'.join(str(1 + secrets.randbelow(254)) for _ in range(3))}"
    with socket.socket() as probe:
        probe.bind((host if sys.platform == "linux" else LOOPBACK, 0))
        return Listener(*probe.getsockname())
