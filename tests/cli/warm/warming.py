"""Makes the warm process import everything, as the first typed command does."""

import contextlib
import socket
from pathlib import Path

from tests.waiting import wait_for


def warmed(path: Path) -> None:
    """Wait until it accepts commands: then it answers with a pid."""
    wait_for(path.is_socket, "it listens")
    wait_for(lambda: _answers(path), "it takes commands")


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as line, contextlib.suppress(OSError):
        line.settimeout(20)
        line.connect(str(path))
        return line.recv(20).strip().isdigit()
    return False
