"""System calls that programs in a box cannot make: a seccomp filter of the kernel.

A filter sees only the numbers that a call is given, never the path or memory they point to.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Sequence

from activities.boxes.box import Network
from activities.boxes.kernel import check, libc

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column in `CALLS` and audit architecture (AUDIT_ARCH) by machine."""

CALLS: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "seccomp": (317, 277),
    "socket": (41, 198),
    "socketpair": (53, 199),
}
"""Call numbers on x86_64 and aarch64; None where a machine has no such call."""

WITHOUT_USE = (
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "add_key", "request_key", "keyctl", "bpf"),
    *("perf_event_open", "userfaultfd", "kexec_load", "kexec_file_load", "open_by_handle_at", "fanotify_init"),
)
"""Calls refused in every box, as if the kernel lacked them. io_uring makes calls that no filter sees."""

SET_ID_BITS = 0o6000
MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
"""The argument with the mode. A set-uid file of the service's account would lend that account to others. Set-uid
bits that a file is created with vanish at the first write to it.
"""

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
AF_NETLINK, NETLINK_ROUTE = 16, 0
"""The only netlink protocol allowed: programs list the network's devices and addresses with it."""

LOAD, IF_EQUAL, IF_AT_LEAST, IF_BITS, ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE, ARGUMENTS = 0, 4, 16
"""Offsets in the data that a filter reads."""

X32 = 0x40000000
"""First number of the x32 ABI's calls on x86_64."""

ALLOWED, REFUSED = 0x7FFF0000, 0x00050000
SET_FILTER = 1

Step = tuple[int, int, int, int]
"""A BPF instruction: code, instructions to skip if true, and if false, operand."""


def number(call: str) -> int | None:
    """Return a call's number on this machine; None if it has none."""
    column = MACHINES.get(os.uname().machine)
    return None if column is None else CALLS[call][column[0]]


def install(network: Network) -> None:
    """Filter the system calls of this process and its children irrevocably."""
    if os.uname().machine not in MACHINES:
        return
    steps = _steps(network)
    program = b"".join(struct.pack("HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(held))
    check(int(libc().syscall(number("seccomp"), SET_FILTER, 0, filter_)), "seccomp")


def _steps(network: Network) -> list[Step]:
    """Build the filter. Programs of another architecture, such as 32-bit ones, can make no system call."""
    _, machine = MACHINES[os.uname().machine]
    unknown = (ANSWER, 0, 0, REFUSED | errno.ENOSYS)
    steps = [(LOAD, 0, 0, MACHINE), (IF_EQUAL, 1, 0, machine), unknown]
    steps += [(LOAD, 0, 0, NUMBER), (IF_AT_LEAST, 0, 1, X32), unknown]
    for call, block in _blocks(network):
        if (of_this_machine := number(call)) is not None:
            steps += [(IF_EQUAL, 0, len(block), of_this_machine), *block]
    return [*steps, (ANSWER, 0, 0, ALLOWED)]


def _blocks(network: Network) -> Iterator[tuple[str, list[Step]]]:
    """Yield each system call that is refused or checked, with the filter's steps for it."""
    allowed = (ANSWER, 0, 0, ALLOWED)
    for call in WITHOUT_USE:
        yield call, [(ANSWER, 0, 0, REFUSED | errno.ENOSYS)]
    for call, mode in MODES.items():
        yield call, [_load(mode), (IF_BITS, 0, 1, SET_ID_BITS), (ANSWER, 0, 0, REFUSED | errno.EPERM), allowed]
    if network is not Network.FULL:
        yield "socket", _sockets()
        yield "socketpair", _by_value(0, (AF_UNIX,), ALLOWED, REFUSED | errno.EAFNOSUPPORT)


def _sockets() -> list[Step]:
    """Decide on `socket` by family, and on netlink by protocol: NETLINK_ROUTE is allowed, since it lists devices and
    addresses.
    """
    route = [_load(2), (IF_EQUAL, 0, 1, NETLINK_ROUTE), (ANSWER, 0, 0, ALLOWED)]
    begin = [_load(0), (IF_EQUAL, 0, len(route), AF_NETLINK), *route]
    return [*begin, *_by_value(0, (AF_UNIX, AF_INET, AF_INET6), ALLOWED, REFUSED | errno.EAFNOSUPPORT)]


def _by_value(argument: int, values: Sequence[int], if_one: int, otherwise: int) -> list[Step]:
    """Decide by whether the argument is one of the values."""
    tests = [(IF_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_load(argument), *tests, (ANSWER, 0, 0, otherwise), (ANSWER, 0, 0, if_one)]


def _load(argument: int) -> Step:
    """Load the lower half of an argument, which is all of an `int`, a mode or a `pid_t`."""
    return LOAD, 0, 0, ARGUMENTS + 8 * argument
