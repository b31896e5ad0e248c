"""Look-up of a connection by its ends, in agreement with the kernel's tables (ruling N5)."""

import os
import socket
import sys

import pytest

from bridge.machine import tcp_callers
from bridge.machine.tcp_lookup import lookup

pytestmark = [
    pytest.mark.ruling("N5"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells"),
]


def inode(line: socket.socket) -> int:
    return os.fstat(line.fileno()).st_ino


@pytest.mark.parametrize(
    ("family", "bound", "host"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "::", "127.0.0.1"),
    ],
    ids=["IPv4", "IPv6", "IPv4 at a socket of IPv6"],
)
def test_both_ends_are_found(family: socket.AddressFamily, bound: str, host: str) -> None:
    both = family is socket.AF_INET6 and bound == "::"
    with socket.create_server((bound, 0), family=family, dualstack_ipv6=both) as listening:
        with socket.create_connection((host, listening.getsockname()[1])) as caller:
            taken, there = listening.accept()
            with taken:
                here = taken.getsockname()[:2]
                assert lookup(there[:2], here) == (os.geteuid(), inode(caller))
                assert lookup(here, there[:2]) == (os.geteuid(), inode(taken))
                if not both:
                    assert tcp_callers._ends(there[:2], here) == tcp_callers._in_tables(there[:2], here)
                caller.close()
                gone = lookup(there[:2], here)
                assert gone is None or gone[1] == 0, "it is in nobody's hands"
        assert lookup((host, 1), (host, listening.getsockname()[1])) is None
        assert lookup((host, listening.getsockname()[1]), (host, 1)) is None, "who listens is at no end"


def test_where_the_kernel_does_not_answer_its_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(tcp_callers, "lookup", refused)
    with socket.create_server(("127.0.0.1", 0)) as there, socket.create_connection(there.getsockname()) as caller:
        theirs, _ = tcp_callers._ends(caller.getsockname(), there.getsockname())
        assert theirs is not None
        assert theirs.inode == inode(caller)
