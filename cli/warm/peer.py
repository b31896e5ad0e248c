"""The process at the other end of the socket, as the kernel identifies it."""

import os
import select
import socket
from dataclasses import dataclass

from cli.warm.client import peer_of

SO_PEERPIDFD = 77
"""A pidfd of the peer, immune to reuse of its pid; from Linux 6.5 on."""
_NAMESPACES = ("mnt", "pid", "net", "user")


@dataclass(frozen=True)
class Peer:
    """A process, held by a pidfd so that reuse of its pid is noticed."""

    pid: int
    user: int
    handle: int

    @classmethod
    def of(cls, line: socket.socket) -> "Peer":
        """Return the process that connected. On older kernels it is looked up by its pid, at once."""
        pid, user = peer_of(line)
        try:
            return cls(pid, user, line.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD))
        except OSError:
            return cls(pid, user, os.pidfd_open(pid))

    @property
    def lives(self) -> bool:
        """True while the process has not ended, so that its pid is still its own."""
        ends = select.poll()  # unlike `select`, it takes handles above 1023
        ends.register(self.handle, select.POLLIN)
        return not ends.poll(0)

    @property
    def is_here(self) -> bool:
        """True if the peer belongs to this process's user and is in the same container."""
        same = (_namespace(self.pid, each) == _namespace(os.getpid(), each) for each in _NAMESPACES)
        return self.user == os.getuid() and all(same)


def _namespace(pid: int, name: str) -> str:
    """Return the namespace's identity; if it is unknown, a value that equals none of this process's."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{name}")
    except OSError:
        return f"process {pid}"
