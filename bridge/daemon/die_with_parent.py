"""Run a program that the kernel kills when the process that started it dies, even by SIGKILL.

Runs as a script that imports nothing of the service: `die_with_parent.py PID PROGRAM [ARGUMENTS]`. Only Linux supports
this; elsewhere the program is run without that tie.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tie(parent: int) -> None:
    """Have the kernel kill this process, and the program it execs, when the parent dies."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent has exited")


def main(arguments: list[str]) -> None:
    """Have this process die with its parent, then exec the program."""
    tie(int(arguments[0]))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(arguments[1], arguments[1:])  # noqa: S606
    except OSError as error:
        sys.exit(f"cannot run {arguments[1]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
