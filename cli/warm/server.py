"""The warm process: everything imported, no thread, no event loop, no open store. It forks for each command."""

import importlib
import os
import pkgutil
import signal
import sys
from types import FrameType
from typing import NoReturn

import cli
from activities.runs.service_process import importing
from activities.settings.home import Home
from bridge import operations
from cli import asking, drawing, invocation
from cli.main import NOUNS, command_of
from cli.warm.command import WarmServer, carry_out
from cli.warm.listening import listen
from cli.warm.order import read_at_start, stamp

_IMPORTED_LATE = (
    "activities.store.connections",
    "bridge.daemon.control",
    "sqlalchemy.dialects.sqlite",
    "workflows.secrets.redact",
)
"""Modules that reads import where they use them."""
_NEVER_HERE = "cli.drawing.markdown"
"""A module that is not imported here: it takes 11 MB, and only the manual needs it, which runs in its own process."""


def serve(home: Home) -> NoReturn:
    """Accept commands for as long as this process lives."""
    installed = stamp()
    _warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    signal.signal(signal.SIGHUP, _begin_anew)
    listener, key = listen(home)
    this = WarmServer(os.getpid(), installed, read_at_start(os.environb), key)
    while True:
        line, _ = listener.accept()
        with line:
            if _fork():
                listener.close()
                carry_out(line, this)


def _fork() -> bool:
    """Return True in the child. If the fork fails, the client sees its connection close and runs the command itself."""
    try:
        return os.fork() == 0
    except OSError:
        return False


def _warm_up() -> None:
    """Import all that a command may need."""
    with importing():
        for package in (cli, asking, drawing, invocation):
            for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
                if module.name != _NEVER_HERE:
                    importlib.import_module(module.name)
        for module in pkgutil.walk_packages(operations.__path__, f"{operations.__name__}."):
            importlib.import_module(module.name)
        for name in _IMPORTED_LATE:
            importlib.import_module(name)
        for noun in NOUNS:
            command_of(noun)


def _begin_anew(number: int, frame: FrameType | None) -> None:
    """Re-exec this process after a change of the installation, so that the daemon need not restart it."""
    del frame
    signal.signal(number, signal.SIG_IGN)  # until the new program handles it
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
