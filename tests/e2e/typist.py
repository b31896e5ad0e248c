"""A launcher of `service` commands for tests: each is a process of its own, with everything imported already.

A typed command takes half a second to import its modules, and the tests run hundreds. So one process imports them once
and then forks for every command. Its input, output, effects and exit code are those of the real command. Tests of the
start itself, of terminals and of signals run the real command.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from bridge.operations.orders import resume, trees
from cli.main import run
from tests.imported import everything
from tests.waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[2]


class Typist:
    """The process that forks, while a test run needs it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="typist-")
        self._address = f"{self._folder.name}/line"
        command = [sys.executable, "-m", "tests.e2e.typist", self._address]
        # Ctrl-C at the terminal does not reach it: commands that stop daemons are still to be typed.
        # The most permissive umask: whatever commands make has restrictive permissions of its own.
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True, umask=0)
        wait_for(Path(self._address).exists, self._process.poll)

    def type(
        self, words: tuple[str, ...], environment: Mapping[str, str], folder: Path, given: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, and return its outcome."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as typed:
            typed.write(given.encode())
            typed.seek(0)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
                line.settimeout(PATIENCE)
                line.connect(self._address)
                order = json.dumps({"words": words, "environment": dict(environment), "folder": str(folder)}).encode()
                socket.send_fds(line, [len(order).to_bytes(8)], [typed.fileno(), out.fileno(), err.fileno()])
                line.sendall(order)
                answered = line.recv(8)
            assert answered, f"service {' '.join(words)} came to no end"
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode())
        return subprocess.CompletedProcess(words, int.from_bytes(answered, signed=True), *texts)


@cache
def typist() -> Typist:
    """Return the launcher of this test run."""
    return Typist()


def serve(address: str) -> None:
    """Import everything, then fork for every command, until the test run has ended.

    An order waits for the verdict of a busy worker as long as the tests do.
    """
    everything()
    resume.PATIENCE = trees.RPC_TIMEOUT = timedelta(seconds=PATIENCE)  # type: ignore[attr-defined]
    if os.fork() == 0:
        os.read(0, 1)  # a pipe that closes when the test run has ended
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(0)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{address}.new")
    listener.listen(64)
    Path(f"{address}.new").rename(address)
    ended, signalled = socket.socketpair()
    signalled.setblocking(False)
    signal.set_wakeup_fd(signalled.fileno())
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    lines: dict[int, socket.socket] = {}
    while True:
        for ready in select.select([listener, ended], [], [])[0]:
            if ready is listener:
                line, _ = listener.accept()
                lines[_begun(line)] = line
            elif ended.recv(4096):
                _answer(lines)


def _begun(line: socket.socket) -> int:
    """Fork for the command that somebody types on this line; return its process."""
    size, files, _, _ = socket.recv_fds(line, 8, 3)
    order = b""
    while len(order) < int.from_bytes(size):
        order += line.recv(65536)
    command = os.fork()
    if command == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        line.close()
        _command(json.loads(order), files)
    for file in files:
        os.close(file)
    return command


def _answer(lines: dict[int, socket.socket]) -> None:
    """Tell those whose commands have ended with which code."""
    while lines and (ended := os.waitpid(-1, os.WNOHANG))[0]:
        with lines.pop(ended[0]) as line, contextlib.suppress(BrokenPipeError):  # whoever typed it may be gone
            line.sendall(os.waitstatus_to_exitcode(ended[1]).to_bytes(8, signed=True))


def _command(order: dict[str, Any], files: list[int]) -> None:
    """Become the command, as a shell would start it."""
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    sys.argv = ["service", *order["words"]]
    run()


if __name__ == "__main__":
    serve(sys.argv[1])
