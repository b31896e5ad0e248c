"""Who has handed a command over: the process at the other end, as the kernel knows it, whatever it says of itself."""

import os
import select
import socket
from dataclasses import dataclass

from cli.warm.client import peer

SO_PEERPIDFD = 77
"""From Linux 6.5 on: that very process, and never another one that got its number afterwards."""
_NAMESPACES = ("mnt", "pid", "net", "user")


@dataclass(frozen=True)
class Peer:
    """A process, held so that its number is not taken for another's."""

    pid: int
    user: int
    handle: int

    @classmethod
    def of(cls, line: socket.socket) -> "Peer":
        """The process that connected. An older kernel has it found by its number, at once."""
        pid, user = peer(line)
        try:
            return cls(pid, user, line.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD))
        except OSError:
            return cls(pid, user, os.pidfd_open(pid))

    @property
    def lives(self) -> bool:
        """Whether it has not ended: then its number is its own."""
        return not select.select([self.handle], [], [], 0)[0]

    @property
    def is_here(self) -> bool:
        """Whether it belongs to this process's user, and is in the same container."""
        same = (_namespace(self.pid, each) == _namespace(os.getpid(), each) for each in _NAMESPACES)
        return self.user == os.getuid() and all(same)


def _namespace(pid: int, name: str) -> str:
    """Which one it is; where it cannot be known, none that is ours."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{name}")
    except OSError:
        return f"process {pid}"
