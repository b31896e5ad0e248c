"""The session's keys, of which those of an account are there for all of its processes."""

from activities.boxes import seccomp
from activities.boxes.kernel import libc

JOIN_SESSION_KEYRING = 1


def control() -> int | None:
    """The number of the call `keyctl`; None where it is not known."""
    return seccomp.number("keyctl")


def forget() -> None:
    """A session keyring of its own, without the keys that the service was started with."""
    if (number := control()) is not None:  # a kernel without key rings, or a container that refuses it, has none
        libc().syscall(number, JOIN_SESSION_KEYRING, None)
