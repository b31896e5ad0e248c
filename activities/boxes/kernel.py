"""Linux kernel calls that Python 3.11 has no function for."""

import contextlib
import ctypes
import fcntl
import functools
import os
import socket
import struct

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x20000, 0x8000000, 0x10000000
CLONE_NEWNET, CLONE_FS = 0x40000000, 0x200
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PLAIN = 2 | 4
"""MS_NOSUID and MS_NODEV: a mount without set-uid programs and devices."""

MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
LAST_CAPABILITY = 63
CAPABILITIES_OF_64 = 0x20080522
"""Version of the format in which the kernel reads and writes a process's capabilities."""

SIOCSIFFLAGS, IFF_UP_RUNNING = 0x8914, 0x41
AT_FDCWD = -100


@functools.cache
def libc() -> ctypes.CDLL:
    """Load the C library, and look up the functions that each start calls."""
    found = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(AttributeError):  # only Linux has them
        found.unshare, found.setns, found.mount, found.umount2, found.prctl, found.syscall  # noqa: B018
    return found


def checked(result: int, what: str) -> int:
    """Return a call's result, or raise OSError naming the call if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Move this process to new namespaces."""
    checked(libc().unshare(flags), "unshare")


def enter_namespace(descriptor: int) -> None:
    """Enter the namespace that the descriptor refers to."""
    checked(libc().setns(descriptor, 0), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Call mount(2)."""
    what = (os.fsencode(source), os.fsencode(target), kind.encode() if kind else None)
    checked(libc().mount(*what, ctypes.c_ulong(flags), data.encode() or None), f"mount on {target}")


def own_mounts() -> None:
    """Enter a new mount namespace: later mounts are visible only to this process and its children."""
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)


def detach(target: str) -> None:
    """Detach this mount and its submounts in the current mount namespace."""
    checked(libc().umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def give_no_capabilities() -> None:
    """Take all capabilities from programs that this process starts as another account; they gain some only in a user
    namespace of their own. This process keeps its own.
    """
    for number in range(LAST_CAPABILITY + 1):
        if libc().prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break  # the last capability that this kernel knows
    checked(libc().prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl")
    header, held = struct.pack("Ii", CAPABILITIES_OF_64, 0), ctypes.create_string_buffer(24)
    checked(libc().capget(header, held), "capget")
    effective, permitted, _, more_effective, more_permitted, _ = struct.unpack("6I", held.raw)
    left = struct.pack("6I", effective, permitted, 0, more_effective, more_permitted, 0)
    checked(libc().capset(header, left), "capset")


def drop_capabilities() -> None:
    """Take all capabilities from the calling thread, but not from the other threads of this process."""
    checked(libc().capset(struct.pack("Ii", CAPABILITIES_OF_64, 0), bytes(24)), "capset")


def no_new_privileges() -> None:
    """Keep programs that are started from here on from gaining rights by a set-uid bit."""
    checked(libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def loopback_up() -> None:
    """Switch on the loopback device of a new network namespace."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_RUNNING))
