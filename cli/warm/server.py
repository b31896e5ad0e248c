"""The warm process: everything imported, no thread, no event loop, no open store; it forks for each command."""

import gc
import importlib
import os
import pkgutil
import signal
import sys
from types import FrameType
from typing import NoReturn

import cli
from activities.settings.home import Home
from bridge import operations
from cli.main import NOUNS, command_of
from cli.warm.command import Server, carry_out
from cli.warm.listening import listen
from cli.warm.order import read_at_start, stamp


def serve(home: Home) -> NoReturn:
    """Take commands for as long as this process lives."""
    installed = stamp()
    _warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what was forked
    signal.signal(signal.SIGHUP, _begin_anew)
    listener, key = listen(home)
    this = Server(os.getpid(), installed, read_at_start(os.environb), key)
    while True:
        line, _ = listener.accept()
        with line:
            if _forked():
                listener.close()
                carry_out(line, this)


def _forked() -> bool:
    """True in the child. Where there is no room for one, who asks sees the line end, and runs its command itself."""
    try:
        return os.fork() == 0
    except OSError:
        return False


def _warm_up() -> None:
    """Import what any command may need, and put aside what was made: the forks share it while nobody writes to it."""
    for package in (cli, operations):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for noun in NOUNS:
        command_of(noun)
    gc.collect()
    gc.freeze()


def _begin_anew(number: int, frame: FrameType | None) -> None:
    """The installation has changed: import it again, in the same process, so that the daemon has nothing to do."""
    del frame
    signal.signal(number, signal.SIG_IGN)  # until the new one can hear it
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
