"""What the kernel keeps for programs: keys, of which those of an account are there for all of its processes."""

import ctypes
import errno
import os
import struct

from activities.boxes.kernel import checked, libc

CALLS = {
    "x86_64": {0xC000003E: 248, 0x40000003: 286},
    "aarch64": {0xC00000B7: 217, 0x40000028: 309},
}
"""Of the three calls for keys (to add, request and control them, in this order) the first: for programs of the
machine's own kind and of its 32-bit forerunner, each by the number with which the kernel names it to a filter.
"""

JOIN_SESSION_KEYRING = 1
PR_SET_SECCOMP, FILTER = 22, 2
LOAD, MASK, IF_EQUAL, IF_ABOVE, IF_AT_LEAST, ANSWER = 0x20, 0x54, 0x15, 0x25, 0x35, 0x06
NUMBER, ARCHITECTURE = 0, 4
"""Where a filter finds them."""

NOT_X32 = 0xBFFFFFFF
ALLOWED, REFUSED = 0x7FFF0000, 0x00050000 | errno.ENOSYS


def control() -> int | None:
    """The number of the call `keyctl`; None where it is not known."""
    known = CALLS.get(os.uname().machine)
    return None if known is None else next(iter(known.values())) + 2


def forget() -> None:
    """A session keyring of its own, without the keys that the service was started with."""
    if (number := control()) is not None:  # a kernel without key rings, or a container that refuses it, has none
        libc().syscall(number, JOIN_SESSION_KEYRING, None)


def keep_none() -> None:
    """For programs that are started from here on it is as if the kernel kept no keys. It cannot be undone."""
    program = b"".join(struct.pack("HBBI", *step) for step in _steps(CALLS.get(os.uname().machine, {})))
    held = ctypes.create_string_buffer(program, len(program))
    told = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(held))
    checked(libc().prctl(PR_SET_SECCOMP, FILTER, told, 0, 0), "prctl")


def _steps(calls: dict[int, int]) -> list[tuple[int, int, int, int]]:
    """Of the filter: what is done, how many steps are left out if it is so and if not, with what."""
    steps = [(LOAD, 0, 0, ARCHITECTURE)]
    for architecture, first in calls.items():
        steps += [
            (IF_EQUAL, 0, 6, architecture),
            (LOAD, 0, 0, NUMBER),
            (MASK, 0, 0, NOT_X32),
            (IF_AT_LEAST, 0, 1, first),
            (IF_ABOVE, 0, 1, first + 2),
            (ANSWER, 0, 0, ALLOWED),
            (ANSWER, 0, 0, REFUSED),
        ]
    return [*steps, (ANSWER, 0, 0, ALLOWED)]
