"""Starting a program as a child, at once in its session, its streams and its box.

No `subprocess`: in a process that was forked itself it touches, and so copies, three times the memory, and it loads
`threading`, which makes its locks anew in every process that is forked.
"""

import errno
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
FIRST_OTHER = 3
"""The first descriptor that is no standard stream."""

LAST_OTHER = 2**31 - 1
FAILED = 255
WHY_BYTES = 4000


def start(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    streams: Sequence[int],
    enter: Callable[[], None] | None = None,
) -> int:
    """The pid of a process in a session of its own, with these three streams and no other descriptor.

    `enter` is run by it before it becomes the program. An OSError says what kept it from that; then there is no child.
    """
    read, write = os.pipe()
    try:
        try:
            pid = os.fork()
            if pid == 0:
                _be(argv, cwd, env, streams, enter, write)
        finally:
            os.close(write)
        why = os.read(read, WHY_BYTES)  # one piece, or the end
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
    streams: Sequence[int],
    enter: Callable[[], None] | None,
    failed: int,
) -> None:
    """All of the child. It closes `failed` by becoming the program, or writes there why it does not."""
    try:
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.chdir(cwd)
        for each in IGNORED_BY_PYTHON:
            signal.signal(each, signal.SIG_DFL)
        os.setsid()
        if enter is not None:
            enter()
        os.closerange(FIRST_OTHER, failed)
        os.closerange(failed + 1, LAST_OTHER)
        _become(argv, env)
    except BaseException as error:
        os.write(failed, (str(error) or repr(error)).encode(errors="replace")[:WHY_BYTES])
    finally:
        os._exit(FAILED)


def _become(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """The first of the places where the program may be; what is told is why one that is there cannot be it."""
    found = errno.ENOENT
    for path in places_of(argv[0], env):
        try:
            os.execve(path, [*argv], env)  # noqa: S606
        except OSError as error:
            if found in NOT_THERE:
                found = error.errno or found
    raise OSError(found, os.strerror(found), argv[0])


def places_of(program: str, env: Mapping[str, str]) -> Iterator[str]:
    """Where a program is looked for."""
    if os.path.dirname(program):
        return iter((program,))
    return (os.path.join(folder, program) for folder in os.get_exec_path(env))
