"""Run a program that dies with the process that started it, even when that one is killed outright.

Started as a script, before anything of ours is imported: `tied.py <pid of the parent> <program> [arguments]`.
Only Linux can tie lives together; elsewhere the program is started all the same.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tie(parent: int) -> None:
    """From here on the kernel kills this process, and what it becomes, when the parent is gone."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent is gone")


def main(arguments: list[str]) -> None:
    """Tie, then become the program."""
    tie(int(arguments[0]))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(arguments[1], arguments[1:])  # noqa: S606
    except OSError as error:
        sys.exit(f"cannot run {arguments[1]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
