"""Linux kernel calls that Python 3.11 has no function for."""

import contextlib
import ctypes
import fcntl
import functools
import os
import socket
import struct

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PLAIN = 2 | 4
"""MS_NOSUID and MS_NODEV: a mount without set-uid programs and devices."""

MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
SIOCSIFFLAGS, IFF_UP_RUNNING = 0x8914, 0x41
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF, LANDLOCK_VERSION = 444, 446, 1
SCOPES_SINCE, SCOPES = 6, 3
"""The version of Landlock that knows scopes: abstract sockets, and signals to processes outside."""


@functools.cache
def libc() -> ctypes.CDLL:
    """Load the C library once, and look up the functions used to start a process in a box."""
    library = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(AttributeError):  # only Linux has them
        library.unshare, library.mount, library.umount2, library.prctl, library.syscall  # noqa: B018
    return library


def check(result: int, what: str) -> int:
    """Return a call's result, or raise OSError naming the call if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Move this process to new namespaces."""
    check(libc().unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Call mount(2)."""
    what = (os.fsencode(source), os.fsencode(target), kind.encode() if kind else None)
    check(libc().mount(*what, ctypes.c_ulong(flags), data.encode() or None), f"mount on {target}")


def own_mounts() -> None:
    """Enter a new mount namespace, whose mounts only this process and its children see."""
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)


def detach(target: str) -> None:
    """Detach this mount and its submounts in the current mount namespace."""
    check(libc().umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def no_new_privileges() -> None:
    """Keep programs that are started from here on from gaining rights by a set-uid bit."""
    check(libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def leave_abstract_sockets() -> None:
    """Keep this process and its children from the abstract sockets of processes outside, by Landlock (Linux 6.12)."""
    call = libc().syscall
    if call(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION) < SCOPES_SINCE:
        return
    ruleset = check(call(LANDLOCK_CREATE_RULESET, struct.pack("3Q", 0, 0, SCOPES), 24, 0), "landlock")
    check(call(LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)


def loopback_up() -> None:
    """Switch on the loopback device of a new network namespace."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_RUNNING))
