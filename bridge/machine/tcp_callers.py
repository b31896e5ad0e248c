"""Which process is at the other end of a connection on this machine, and whether it is an agent's (ruling N5).

A token can be found and shown by anybody; the kernel knows whose socket it is. Only processes of this account are
looked through: agents without an account of their own have it. Who calls from another machine, from a container with
a network of its own, or through a program of a person's that passes calls on, cannot be known: there the token alone
decides. On a machine without /proc nothing is known of anybody.
"""

import ipaddress
import os
import socket
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from activities.runs.ancestry import Agent, GoneError, UntoldError, agent_of, supervisors
from activities.runs.os_processes import pids, started
from bridge.machine.tcp_lookup import Address, lookup

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LOCAL, REMOTE, UID, INODE = 1, 2, 7, 9
"""Columns of the kernel's tables of connections."""

_CALLED_LATELY: dict[int, str] = {}
"""Processes, the last one last, and the file each called by: a look at all files of all processes takes some ten
milliseconds, and most callers call again."""

_SO_MANY = 8
_PEOPLE_S: deque[tuple[int, int]] = deque(maxlen=_SO_MANY)
"""Callers that are below no supervisor, with the time they began. They stay so: what ends above them is replaced by
something still further above."""


class CannotTellError(Exception):
    """Agents run here, and the caller could be one of them."""


@dataclass(frozen=True)
class _Socket:
    uid: int
    inode: int


def agent_at(caller: Address | None, here: Address | None) -> Agent | None:
    """Whose agent calls from that address; None for people, and where it cannot be known at all."""
    if caller is None or here is None or not Path(TABLES[0]).exists():
        return None
    theirs, ours = _ends(caller, here)
    if theirs is None and ours is not None and not ipaddress.ip_address(caller[0]).is_loopback:
        return None  # another machine's
    if theirs is not None and theirs.inode and os.geteuid() not in (0, theirs.uid):
        return None  # another account's: no agent of ours
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


def is_known(caller: Address | None, here: Address | None) -> bool:
    """Whether a process of a person's calls that has called lately: told at once, where a whole look takes its time."""
    if caller is None or here is None:
        return False
    with suppress(OSError):
        found = lookup(caller, here)
        holder = next((pid for pid in _lately() if found and _holds(pid, f"socket:[{found[1]}]")), None)
        return holder is not None and (holder, started(holder)) in _PEOPLE_S
    return False


def _whose(pid: int) -> Agent | None:
    """Whose agent a process is; None for people's, which are remembered."""
    begun = started(pid)
    if begun is not None and (pid, begun) in _PEOPLE_S:
        return None
    if (found := agent_of(pid)) is None and begun is not None and started(pid) == begun:
        _PEOPLE_S.appendleft((pid, begun))
    return found


def _ends(caller: Address, here: Address) -> tuple[_Socket | None, _Socket | None]:
    """Both ends of the connection, as far as they are on this machine; one that is closed has no inode any more."""
    try:
        found = lookup(caller, here), lookup(here, caller)
    except OSError:
        return _in_tables(caller, here)
    theirs, ours = (_Socket(*each) if each else None for each in found)
    return theirs, ours


def _in_tables(caller: Address, here: Address) -> tuple[_Socket | None, _Socket | None]:
    """The same where the kernel does not answer for one connection."""
    mine = {(_written(here, mapped), _written(caller, mapped)): 1 for mapped in (False, True)}
    places = mine | {(there, this): 0 for this, there in mine}
    port = f":{caller[1]:04X} "  # there are thousands of lines on a busy machine
    found: list[_Socket | None] = [None, None]
    for table in TABLES:
        with suppress(OSError), open(table) as lines:
            for columns in (line.split() for line in lines if port in line):
                if (place := places.get((columns[LOCAL], columns[REMOTE]))) is not None:
                    found[place] = _Socket(int(columns[UID]), int(columns[INODE]))
    return found[0], found[1]


def _written(address: Address, mapped: bool) -> str:
    """As the kernel writes it: words of four bytes in the machine's own order. IPv4 may stand in a socket of IPv6."""
    ip = ipaddress.ip_address(address[0])
    packed = ip.packed
    if mapped and ip.version == 4:
        packed = socket.inet_pton(socket.AF_INET6, f"::ffff:{ip}")
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return f"{''.join(f'{int.from_bytes(each, sys.byteorder):08X}' for each in words)}:{address[1]:04X}"


def _holders(inode: int) -> Iterator[int]:
    """The processes that have the socket, as far as they are ours to see: who called lately first, then the newest."""
    wanted, lately = f"socket:[{inode}]", _lately()
    yield from (pid for pid in chain(lately, _others_than(lately)) if _holds(pid, wanted))


def _lately() -> tuple[int, ...]:
    return tuple(_CALLED_LATELY)[::-1]


def _holds(pid: int, wanted: str) -> bool:
    """Whether it has the socket; a process of thousands of files is asked for the one it called by first."""
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
    yield from (each for each in sorted(pids(), reverse=True) if each not in lately)
