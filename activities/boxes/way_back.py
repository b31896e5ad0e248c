"""The way out of a box, for a process that enters one itself to spawn a program there.

The other way is to fork a process that enters the box and becomes the program. To copy a loaded Python for that costs
more than all of the entering.
"""

import contextlib
import os
from collections.abc import Callable, Iterator

from activities.boxes import kernel

FOLDERS = ("/", ".")
NAMESPACES = ("/proc/self/ns/mnt", "/proc/self/ns/net", "/proc/self/ns/cgroup")


class NoWayBackError(Exception):
    """This process could not leave what it enters. It has not entered anything."""


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Inside, this process may leave its mounts, its network, its view of control groups and the groups of its account,
    and be another account, but for its effective one: it must stay root. Afterwards it has all of that again.

    If it cannot go back after all, that is a RuntimeError, which no caller takes for a failed start: it has to end.
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
    """It leads to where this process stands now. To enter its mounts puts it at their root: it may stand deeper."""
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
