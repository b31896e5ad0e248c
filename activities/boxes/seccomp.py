"""System calls that programs in a box cannot make: a seccomp filter of the kernel.

A filter sees only the numbers that a call is given, never the path or memory they point to. Calls that depend on a path
go to the listener that the kernel provides (`decided_calls`).
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Sequence

from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.kernel import checked, libc

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column in `CALLS` and audit architecture (AUDIT_ARCH) by machine."""

CALLS: dict[str, tuple[int | None, int | None]] = {
    "open": (2, None),
    "openat": (257, 56),
    "creat": (85, None),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "truncate": (76, 45),
    "ioctl": (16, 29),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "mount_setattr": (442, 442),
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
    "prlimit64": (302, 261),
    "ioprio_set": (251, 30),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
"""Call numbers on x86_64 and aarch64; None where a machine has no such call."""

WITHOUT_USE = (
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "add_key", "request_key", "keyctl", "bpf"),
    *("perf_event_open", "userfaultfd", "kexec_load", "kexec_file_load", "open_by_handle_at", "fanotify_init"),
)
"""Refused in every box, as if the kernel lacked them. io_uring makes calls that no filter sees."""

WITHOUT_USE_IN_LANDLOCK = (
    *("fchmodat2", "setxattrat", "removexattrat", "file_setattr", "open_tree", "open_tree_attr", "mount_setattr"),
)
"""Younger forms of the calls that the supervisor decides; programs have a fallback. Landlock refuses all mounting."""

SET_ID_BITS = 0o6000
MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
"""The argument with the mode. A set-uid file of the service's account would lend that account to others. Set-uid
bits that a file is created with vanish at the first write to it.
"""

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, TYPE_BITS, ANY_PROTOCOL, TCP = 1, 0xF, 0, 6

AF_NETLINK, NETLINK_ROUTE = 16, 0
"""Programs list the network's devices and addresses with it."""

FLAG_IOCTLS = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602, 0x800C6613, 0x40806685)
"""FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC32_SETVERSION,
FS_IOC_SET_ENCRYPTION_POLICY, FS_IOC_ENABLE_VERITY: they change a file by a descriptor that may only read it.
"""

DECIDED = (
    *("chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr"),
    *("removexattr", "lremovexattr", "fremovexattr", "truncate"),
)
"""Decided by their target file: Landlock mediates no changes of metadata, and truncate(2) only from Linux 6.2."""

DECIDED_BY_PROCESS = {"sched_setaffinity": 0, "sched_setscheduler": 0, "sched_setparam": 0, "setpriority": 1}
"""The argument that names a process. 0, the caller, is allowed; others are decided."""

OWN_PROCESS = {"prlimit64": 0, "sched_setattr": 0, "ioprio_set": 1}
"""The argument that names a process, which must be 0."""

KIND_OF_PROCESS = {"setpriority": 0, "ioprio_set": 1}
"""For calls whose first argument says if the second is a process, a group or a user: the value for a process."""

LOAD, MASK, IF_EQUAL, IF_AT_LEAST, IF_BITS, ANSWER = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE, ARGUMENTS = 0, 4, 16
"""Offsets in the data that a filter reads."""

X32 = 0x40000000
"""First number of the x32 ABI's calls on x86_64."""

ALLOWED, LISTENER, REFUSED = 0x7FFF0000, 0x7FC00000, 0x00050000
SET_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5

Step = tuple[int, int, int, int]
"""A BPF instruction: code, instructions to skip if true, and if false, operand."""


def number(call: str) -> int | None:
    """Return a call's number on this machine; None if it has none."""
    column = MACHINES.get(os.uname().machine)
    return None if column is None else CALLS[call][column[0]]


def install(box: Box) -> int | None:
    """Filter the calls of this process and its children for good.

    In a Landlock box, return the listener through which the supervisor decides changes of metadata (`decided_calls`).
    Without one (a kernel before 5.0, a container that has a listener already) these calls are refused.
    """
    if os.uname().machine not in MACHINES:
        return None
    if box.kind is BoxKind.LANDLOCK:
        decided = _steps(box, LISTENER)
        for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER):  # the former from Linux 5.19
            if (listener := _set_filter(flags, decided)) >= 0:
                return listener
    checked(_set_filter(0, _steps(box, REFUSED | errno.EPERM)), "seccomp")
    return None


def _set_filter(flags: int, steps: Sequence[Step]) -> int:
    program = b"".join(struct.pack("HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(program, len(program))
    told = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(held))
    return int(libc().syscall(number("seccomp"), SET_FILTER, flags, told))


def _steps(box: Box, decided: int) -> list[Step]:
    """Build a filter for programs of the machine's own architecture; others (32-bit ones) can make no call."""
    _, machine = MACHINES[os.uname().machine]
    unknown = (ANSWER, 0, 0, REFUSED | errno.ENOSYS)
    steps = [(LOAD, 0, 0, MACHINE), (IF_EQUAL, 1, 0, machine), unknown]
    steps += [(LOAD, 0, 0, NUMBER), (IF_AT_LEAST, 0, 1, X32), unknown]
    for call, block in _blocks(box, decided):
        if (of_this_machine := number(call)) is not None:
            steps += [(IF_EQUAL, 0, len(block), of_this_machine), *block]
    return [*steps, (ANSWER, 0, 0, ALLOWED)]


def _blocks(box: Box, decided: int) -> Iterator[tuple[str, list[Step]]]:
    """Yield each call that is not simply allowed, with the steps that answer it. The first block of a call counts."""
    landlock = box.kind is BoxKind.LANDLOCK
    for call in (*WITHOUT_USE, *(WITHOUT_USE_IN_LANDLOCK if landlock else ())):
        yield call, [(ANSWER, 0, 0, REFUSED | errno.ENOSYS)]
    others = (ANSWER, 0, 0, decided if landlock else ALLOWED)
    for call, mode in MODES.items():
        yield call, [_load(mode), (IF_BITS, 0, 1, SET_ID_BITS), (ANSWER, 0, 0, REFUSED | errno.EPERM), others]
    if box.network is not Network.FULL:
        yield "socket", _sockets(box)
        yield "socketpair", _by_value(0, (AF_UNIX,), ALLOWED, REFUSED | errno.EAFNOSUPPORT)
    if landlock:
        for call in DECIDED:
            yield call, [(ANSWER, 0, 0, decided)]
        yield "ioctl", _by_value(1, FLAG_IOCTLS, REFUSED | errno.ENOTTY, ALLOWED)
        for call, process in (DECIDED_BY_PROCESS | OWN_PROCESS).items():
            kind = [_load(0), (IF_EQUAL, 1, 0, KIND_OF_PROCESS.get(call, 0)), (ANSWER, 0, 0, REFUSED | errno.EPERM)]
            other = decided if call in DECIDED_BY_PROCESS else REFUSED | errno.EPERM
            yield call, [*(kind if call in KIND_OF_PROCESS else ()), *_by_value(process, (0,), ALLOWED, other)]


def _sockets(box: Box) -> list[Step]:
    """Answer by a socket's family, and for netlink by its protocol: NETLINK_ROUTE lists devices and addresses.

    On the machine's own network only TCP is allowed, since Landlock restricts no other protocol.
    """
    allowed, unknown = (ANSWER, 0, 0, ALLOWED), REFUSED | errno.EAFNOSUPPORT
    route = [_load(2), (IF_EQUAL, 0, 1, NETLINK_ROUTE), allowed]
    begin = [_load(0), (IF_EQUAL, 0, len(route), AF_NETLINK), *route]
    if box.kind is not BoxKind.LANDLOCK or box.own_network:
        return [*begin, *_by_value(0, (AF_UNIX, AF_INET, AF_INET6), ALLOWED, unknown)]
    if box.network is Network.NONE:
        return [*begin, *_by_value(0, (AF_UNIX,), ALLOWED, unknown)]
    no_tcp = (ANSWER, 0, 0, REFUSED | errno.EPROTONOSUPPORT)
    stream = [_load(1), (MASK, 0, 0, TYPE_BITS), (IF_EQUAL, 1, 0, SOCK_STREAM), no_tcp]
    tcp = [_load(2), (IF_EQUAL, 2, 0, ANY_PROTOCOL), (IF_EQUAL, 1, 0, TCP), no_tcp]
    inet = _by_value(0, (AF_INET, AF_INET6), ALLOWED, unknown)
    return [*begin, _load(0), (IF_EQUAL, 0, 1, AF_UNIX), allowed, *stream, *tcp, *inet]


def _by_value(argument: int, values: Sequence[int], if_one: int, otherwise: int) -> list[Step]:
    """Answer by whether the argument is one of the values."""
    tests = [(IF_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_load(argument), *tests, (ANSWER, 0, 0, otherwise), (ANSWER, 0, 0, if_one)]


def _load(argument: int) -> Step:
    """Load the lower half of an argument, which is all of an `int`, a mode or a `pid_t`."""
    return LOAD, 0, 0, ARGUMENTS + 8 * argument
