"""Has the process that runs commands import what they need, as the first command that is typed does."""

import contextlib
import socket
from pathlib import Path

from tests.waiting import wait_for


def warmed(path: Path) -> None:
    """Until it takes commands: then it answers with the process that would run one."""
    wait_for(path.is_socket, "it listens")
    wait_for(lambda: _answers(path), "it takes commands")


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as line, contextlib.suppress(OSError):
        line.settimeout(20)
        line.connect(str(path))
        return line.recv(20).strip().isdigit()
    return False
