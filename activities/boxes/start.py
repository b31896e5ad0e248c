"""Start a program as a child, in its own session, with its streams, and in its box.

No `subprocess`: a forked process that uses it copies more memory, and must make the locks of `threading` again. A
program without a box is spawned, which copies no memory.
"""

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

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
) -> int:
    """Start a process in its own session, with these three streams and no other descriptor. Return its pid.

    With `enter`, a forked child calls it before it becomes the program. Raise OSError with the reason if that fails;
    then no child is left.
    """
    if enter is None and os.path.isdir(DESCRIPTORS):
        with contextlib.suppress(NotImplementedError):  # spawned processes can't have their own session on this system
            return _spawn(argv, cwd, env, streams)
    return _fork(argv, cwd, env, streams, enter or (lambda _: None))


def _spawn(argv: Sequence[str], cwd: str, env: Mapping[str, str], streams: Streams) -> int:
    """Spawn the program, without copying this process's memory. This process changes to the child's folder for a
    moment.
    """
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(streams)]
    others = (int(name) for name in os.listdir(DESCRIPTORS))
    closing = [(os.POSIX_SPAWN_CLOSE, each) for each in others if each >= FIRST_OTHER]
    how: dict[str, Any] = {"setsid": True, "setsigdef": IGNORED_BY_PYTHON}
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(cwd)
        there = filter(os.path.exists, places_of(argv[0], env))
        spawn = partial(os.posix_spawn, file_actions=[*actions, *closing], **how)
        return _first(there, lambda path: spawn(path, [*argv], env), argv[0])
    finally:
        os.fchdir(here)
        os.close(here)


def _fork(
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
        for signum in IGNORED_BY_PYTHON:
            signal.signal(signum, signal.SIG_DFL)
        os.setsid()
        enter(range(FIRST_OTHER))
        os.closerange(FIRST_OTHER, failed)
        os.closerange(failed + 1, LAST_OTHER)
        _first(places_of(argv[0], env), lambda path: os.execve(path, [*argv], env), argv[0])  # noqa: S606
    except BaseException as error:
        os.write(failed, (str(error) or repr(error)).encode(errors="replace")[:WHY_BYTES])
    finally:
        os._exit(FAILED)


def _first(paths: Iterable[str], begin: Callable[[str], int], program: str) -> int:
    """Return the result of `begin` for the first path that works. If all fail, raise the error of an existing path, if
    there is one.
    """
    number = errno.ENOENT
    for path in paths:
        try:
            return begin(path)
        except OSError as error:
            if number in NOT_THERE:
                number = error.errno or number
    raise OSError(number, os.strerror(number), program)


def places_of(program: str, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths at which a program is looked up."""
    if os.path.dirname(program):
        return iter((program,))
    return (os.path.join(folder, program) for folder in os.get_exec_path(env))
