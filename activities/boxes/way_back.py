"""The way out of a box, for a process that enters the box itself to spawn a program there.

The alternative is to fork a process that enters the box and becomes the program. Copying a loaded Python for that costs
more than entering.
"""

import contextlib
import os
from collections.abc import Callable, Iterator

from activities.boxes import kernel

FOLDERS = ("/", ".")
NAMESPACES = ("/proc/self/ns/mnt", "/proc/self/ns/net", "/proc/self/ns/cgroup")


class NoWayBackError(Exception):
    """This process could not leave the box again, so it has not entered."""


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Let this process change its mounts, network, control group namespace, groups and account inside the context, and
    restore them afterwards. Its effective account must stay root.

    Raise RuntimeError if it cannot go back: no caller takes that for a failed start, and the process has to end.
    """
    with contextlib.ExitStack() as stack:
        try:
            back = _way_back(stack)
            back()
        except OSError as error:
            raise NoWayBackError(str(error)) from None
        try:
            yield
        finally:
            try:
                back()
            except OSError as error:
                raise RuntimeError(f"the box that was entered cannot be left: {error}") from error


def _way_back(stack: contextlib.ExitStack) -> Callable[[], None]:
    """Return a function that restores the current state. Entering a mount namespace moves to its root, so it also
    restores the root and current folder.
    """
    root, here = (_opened(stack, path, os.O_PATH | os.O_DIRECTORY) for path in FOLDERS)
    namespaces = [_opened(stack, path, os.O_RDONLY) for path in NAMESPACES]
    users, own_groups, groups = os.getresuid(), os.getresgid(), os.getgroups()

    def back() -> None:
        os.setresuid(*users)
        os.setresgid(*own_groups)
        os.setgroups(groups)
        for each in namespaces:
            kernel.enter_namespace(each)
        os.fchdir(root)
        os.chroot(".")
        os.fchdir(here)

    return back


def _opened(stack: contextlib.ExitStack, path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor
