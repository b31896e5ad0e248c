"""Start a program as a child, in its own session, with its streams, and in its box.

No `subprocess`: in a forked process it touches, and so copies, more memory, and it loads `threading`, which makes its
locks anew in every forked process. A program without a box is spawned, which copies nothing; so is one whose box this
process can leave again (`way_back`): to fork a loaded Python costs more than to enter the box and go back.
"""

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from activities.boxes import kernel

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
FIRST_OTHER = 3
"""The first descriptor after the standard streams."""

LAST_OTHER = 2**31 - 1
DESCRIPTORS = "/dev/fd"
"""A folder with the descriptors of the process that reads it."""

Streams = Sequence[int]
"""Descriptors that become the standard streams."""

FAILED = 255
WHY_BYTES = 4000


def start(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    streams: Streams,
    enter: Callable[[Streams], None] | None = None,
    visit: Callable[[Streams], AbstractContextManager[None]] | None = None,
) -> int:
    """Start a process in its own session, with these three streams and no other descriptor. Return its pid.

    A forked child calls `enter` before it becomes the program. With `visit`, the program is spawned inside of it, in
    this process's folder there, and `enter` is the fallback. Raise OSError with the reason if that fails; then no child
    is left.
    """
    if visit is not None:
        with contextlib.suppress(NoWayBackError), visit(streams):
            return _spawned(argv, ".", env, streams, resetids=True)
    if enter is None and os.path.isdir(DESCRIPTORS):
        with contextlib.suppress(NotImplementedError):  # spawned processes can't have their own session on this system
            return _spawned(argv, cwd, env, streams)
    return _forked(argv, cwd, env, streams, enter or (lambda _: None))


def _spawned(argv: Sequence[str], cwd: str, env: Mapping[str, str], streams: Streams, *, resetids: bool = False) -> int:
    """Spawn the program, without copying this process's memory. This process is in the child's folder for a moment."""
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(streams)]
    others = (int(name) for name in os.listdir(DESCRIPTORS))
    closing = [(os.POSIX_SPAWN_CLOSE, each) for each in others if each >= FIRST_OTHER]
    how: dict[str, Any] = {"setsid": True, "setsigdef": IGNORED_BY_PYTHON, "resetids": resetids}
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(cwd)
        there = filter(os.path.exists, places_of(argv[0], env))
        spawn = partial(os.posix_spawn, file_actions=[*actions, *closing], **how)
        return _first(there, lambda path: spawn(path, [*argv], env), argv[0])
    finally:
        os.fchdir(here)
        os.close(here)


def _forked(
    argv: Sequence[str], cwd: str, env: Mapping[str, str], streams: Streams, enter: Callable[[Streams], None]
) -> int:
    read, write = os.pipe()
    try:
        try:
            pid = os.fork()
            if pid == 0:
                _be(argv, cwd, env, streams, enter, write)
        finally:
            os.close(write)
        why = os.read(read, WHY_BYTES)  # the error, or end of file
    finally:
        os.close(read)
    if why:
        os.waitpid(pid, 0)
        raise OSError(why.decode(errors="replace"))
    return pid


def _be(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    streams: Streams,
    enter: Callable[[Streams], None],
    failed: int,
) -> None:
    """Become the program in the forked child, which closes `failed`; on failure write the reason there."""
    try:
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.chdir(cwd)
        for each in IGNORED_BY_PYTHON:
            signal.signal(each, signal.SIG_DFL)
        os.setsid()
        enter(range(FIRST_OTHER))
        os.closerange(FIRST_OTHER, failed)
        os.closerange(failed + 1, LAST_OTHER)
        _first(places_of(argv[0], env), lambda path: os.execve(path, [*argv], env), argv[0])  # noqa: S606
    except BaseException as error:
        os.write(failed, (str(error) or repr(error)).encode(errors="replace")[:WHY_BYTES])
    finally:
        os._exit(FAILED)


def _first(places: Iterable[str], begin: Callable[[str], int], program: str) -> int:
    """Call `begin` with the first place that works. Raise the error of a place that exists, if one does."""
    found = errno.ENOENT
    for path in places:
        try:
            return begin(path)
        except OSError as error:
            if found in NOT_THERE:
                found = error.errno or found
    raise OSError(found, os.strerror(found), program)


def places_of(program: str, env: Mapping[str, str]) -> Iterator[str]:
    """Return the paths at which a program is looked up."""
    if os.path.dirname(program):
        return iter((program,))
    return (os.path.join(folder, program) for folder in os.get_exec_path(env))


FOLDERS = ("/", ".")
NAMESPACES = ("/proc/self/ns/mnt", "/proc/self/ns/net", "/proc/self/ns/cgroup")


class NoWayBackError(Exception):
    """This process could not return from the box's namespaces and accounts later, so it has not entered the box."""


@contextlib.contextmanager
def way_back() -> Iterator[None]:
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
