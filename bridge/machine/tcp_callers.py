"""Identification of the process at the other end of a local connection, and of the agent it belongs to (ruling N5).

An agent may have found a person's token, but the kernel knows whose socket it is. Only processes of this account are
searched, because agents without a separate account run under it. Callers from another machine, from a container with
its own network, or through a person's proxy cannot be identified: for them the token alone decides. Without /proc
nobody is identified.
"""

import errno
import ipaddress
import os
import socket
import struct
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from activities.runs.ancestry import AgentProcess, GoneError, UntoldError, agent_of, supervisors
from activities.runs.os_processes import pids, start_time

SocketAddress = tuple[str, int]

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEAD = struct.Struct("=IHHII")
_WANTED = struct.Struct("=BBBxI")
_ENDS = struct.Struct("!HH16s16s")
_ANY_STATE, _NO_COOKIE = 0xFFFFFFFF, b"\xff" * 8
_TO_UID = _HEAD.size + 4 + 48 + 12
"""The offset of the uid and the inode in an answer: behind four bytes, the socket's ends and three counters."""


def lookup(this: SocketAddress, there: SocketAddress) -> tuple[int, int] | None:
    """Return the uid and the inode of the socket between these addresses; None if no such socket exists.

    Raise OSError if the kernel does not support the query.
    """
    ours, theirs = (ipaddress.ip_address(address) for address, _ in (this, there))
    family = socket.AF_INET if ours.version == 4 else socket.AF_INET6
    ends = _ENDS.pack(this[1], there[1], ours.packed.ljust(16, b"\0"), theirs.packed.ljust(16, b"\0"))
    body = _WANTED.pack(family, socket.IPPROTO_TCP, 0, _ANY_STATE) + ends + b"\0" * 4 + _NO_COOKIE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.send(_HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body)
        answer = kernel.recv(4096)
    if _HEAD.unpack_from(answer)[1] == _ERROR:
        code = -struct.unpack_from("=i", answer, _HEAD.size)[0]
        if code != errno.ENOENT:
            raise OSError(code, os.strerror(code))
        return None
    answered = answer[_HEAD.size + 4 : _HEAD.size + 4 + _ENDS.size]
    if answered[:4] != ends[:4]:  # a listening socket, which is not connected
        return None
    uid, inode = struct.unpack_from("=II", answer, _TO_UID)
    return uid, inode


TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LOCAL, REMOTE, UID, INODE = 1, 2, 7, 9
"""Columns of the kernel's connection tables."""

_CALLED_LATELY: dict[int, str] = {}
"""A cache of recent callers, the latest last, with the file descriptor each called by: most callers call again, and a
search goes through the open files of all processes.
"""

_SO_MANY = 8
_PEOPLE_S: deque[tuple[int, int]] = deque(maxlen=_SO_MANY)
"""Callers without an agent's supervisor among their ancestors, with their start time. That never changes: if a parent
ends, only a farther ancestor replaces it.
"""


class CannotTellError(Exception):
    """Agents run here, and the caller could be one of them."""


@dataclass(frozen=True)
class _Socket:
    uid: int
    inode: int


def agent_at(caller: SocketAddress | None, here: SocketAddress | None) -> AgentProcess | None:
    """Return the agent that calls from the address; None for people, and if the caller cannot be identified."""
    if caller is None or here is None or not Path(TABLES[0]).exists():
        return None
    theirs, ours = _ends(caller, here)
    if theirs is None and ours is not None and not ipaddress.ip_address(caller[0]).is_loopback:
        return None  # from another machine
    if theirs is not None and theirs.inode and os.geteuid() not in (0, theirs.uid):
        return None  # another account: not one of our agents
    for pid in _holders(theirs.inode) if theirs and theirs.inode else ():
        try:
            return _whose(pid)
        except GoneError:
            continue
        except UntoldError:
            raise CannotTellError from None
    if next(supervisors(), None) is not None:
        raise CannotTellError
    return None


def is_known(caller: SocketAddress | None, here: SocketAddress | None) -> bool:
    """Return whether the connection belongs to a person's process that called recently. This is fast: it needs no full
    search.
    """
    if caller is None or here is None:
        return False
    with suppress(OSError):
        end = lookup(caller, here)
        holder = next((pid for pid in _lately() if end and _holds(pid, f"socket:[{end[1]}]")), None)
        return holder is not None and (holder, start_time(holder)) in _PEOPLE_S
    return False


def _whose(pid: int) -> AgentProcess | None:
    """Return the agent of a process, or None for a person's process, which is cached."""
    begun = start_time(pid)
    if begun is not None and (pid, begun) in _PEOPLE_S:
        return None
    if (agent := agent_of(pid)) is None and begun is not None and start_time(pid) == begun:
        _PEOPLE_S.appendleft((pid, begun))
    return agent


def _ends(caller: SocketAddress, here: SocketAddress) -> tuple[_Socket | None, _Socket | None]:
    """Return both ends of the connection that are on this machine; a closed socket has no inode."""
    try:
        rows = lookup(caller, here), lookup(here, caller)
    except OSError:
        return _in_tables(caller, here)
    theirs, ours = (_Socket(*row) if row else None for row in rows)
    return theirs, ours


def _in_tables(caller: SocketAddress, here: SocketAddress) -> tuple[_Socket | None, _Socket | None]:
    """Find both ends in the kernel's tables, if it does not answer for a single connection."""
    mine = {(_in_table_form(here, mapped), _in_table_form(caller, mapped)): 1 for mapped in (False, True)}
    places = mine | {(there, this): 0 for this, there in mine}
    port = f":{caller[1]:04X} "  # there are thousands of lines on a busy machine
    ends: list[_Socket | None] = [None, None]
    for table in TABLES:
        with suppress(OSError), open(table) as lines:
            for columns in (line.split() for line in lines if port in line):
                if (place := places.get((columns[LOCAL], columns[REMOTE]))) is not None:
                    ends[place] = _Socket(int(columns[UID]), int(columns[INODE]))
    return ends[0], ends[1]


def _in_table_form(address: SocketAddress, mapped: bool) -> str:
    """Format an address like the kernel: words of four bytes in native byte order. IPv6 sockets may hold IPv4
    addresses.
    """
    ip = ipaddress.ip_address(address[0])
    packed = ip.packed
    if mapped and ip.version == 4:
        packed = socket.inet_pton(socket.AF_INET6, f"::ffff:{ip}")
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return f"{''.join(f'{int.from_bytes(word, sys.byteorder):08X}' for word in words)}:{address[1]:04X}"


def _holders(inode: int) -> Iterator[int]:
    """Yield the visible processes that hold the socket: recent callers first, then the newest processes."""
    wanted, lately = f"socket:[{inode}]", _lately()
    yield from (pid for pid in chain(lately, _others_than(lately)) if _holds(pid, wanted))


def _lately() -> tuple[int, ...]:
    return tuple(_CALLED_LATELY)[::-1]


def _holds(pid: int, wanted: str) -> bool:
    """Return whether the process holds the socket. Check its last known file descriptor first, since it may have
    thousands.
    """
    if (last := _CALLED_LATELY.get(pid)) and _is(pid, last, wanted):
        return True
    with suppress(OSError):  # it ended meanwhile, or belongs to somebody else
        for file in os.listdir(f"/proc/{pid}/fd"):
            if _is(pid, file, wanted):
                _remember(pid, file)
                return True
    return False


def _is(pid: int, file: str, wanted: str) -> bool:
    with suppress(OSError):  # it was closed meanwhile
        return os.readlink(f"/proc/{pid}/fd/{file}") == wanted
    return False


def _remember(pid: int, file: str) -> None:
    _CALLED_LATELY.pop(pid, None)
    _CALLED_LATELY[pid] = file
    for oldest in tuple(_CALLED_LATELY)[:-_SO_MANY]:
        _CALLED_LATELY.pop(oldest, None)


def _others_than(lately: tuple[int, ...]) -> Iterator[int]:
    yield from (pid for pid in sorted(pids(), reverse=True) if pid not in lately)
