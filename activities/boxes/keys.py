"""The kernel's session keyring, which all processes of an account can use."""

from activities.boxes import seccomp
from activities.boxes.kernel import libc

JOIN_SESSION_KEYRING = 1


def control() -> int | None:
    """Return the number of the system call `keyctl`; None if it is unknown."""
    return seccomp.number("keyctl")


def forget() -> None:
    """Join a new session keyring, without the keys that the service was started with."""
    if (number := control()) is not None:  # a kernel without keyrings, or a container that refuses them, has none
        libc().syscall(number, JOIN_SESSION_KEYRING, None)
