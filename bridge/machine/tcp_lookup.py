"""Look-up of one local connection in the kernel by its two ends (sock_diag): reading its tables takes ten
milliseconds.
"""

import errno
import ipaddress
import os
import socket
import struct

Address = tuple[str, int]

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEAD = struct.Struct("=IHHII")
_WANTED = struct.Struct("=BBBxI")
_ENDS = struct.Struct("!HH16s16s")
_ANY_STATE, _NO_COOKIE = 0xFFFFFFFF, b"\xff" * 8
_TO_UID = _HEAD.size + 4 + 48 + 12
"""The offset of the uid and the inode in an answer: behind four bytes, the socket's ends and three counters."""


def lookup(this: Address, there: Address) -> tuple[int, int] | None:
    """Return the uid and the inode of the socket with these ends, its own first; None if there is none.

    Raise OSError if the kernel does not support the query.
    """
    ours, theirs = (ipaddress.ip_address(each[0]) for each in (this, there))
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
    found = answer[_HEAD.size + 4 : _HEAD.size + 4 + _ENDS.size]
    if found[:4] != ends[:4]:  # a listening socket, which is not connected
        return None
    uid, inode = struct.unpack_from("=II", answer, _TO_UID)
    return uid, inode
