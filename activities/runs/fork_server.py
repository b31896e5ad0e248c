"""Start supervisors in a few milliseconds: this process has loaded their program, and forks for each run.

No library, nor `multiprocessing.forkserver`, which keeps a descriptor for each child and ties its children to one
program; here each must outlive the server and the worker. A separate program, standard library only: `python -I -S
fork_server.py`, with its end of a socket pair as standard input. It ends with the worker. A request is one packet: the
run's key and folder, with two descriptors, for the supervisor's standard output and its log.

Processes of a killed supervisor become children of the fork server, which reports and ends them at once: a process
without a supervisor must not be taken for a person's.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":  # isolated mode knows the standard library only
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from activities.boxes import control_group, kernel
from activities.boxes.control_group import Group, JobGroup
from activities.boxes.start import FIRST_OTHER, LAST_OTHER
from activities.runs import supervisor
from activities.runs.os_processes import LEFT_OVER_FILE, children, descendants, kill_all, report_left_over

TAKEN = b"1"
"""First output of a supervisor: it tells the worker that the supervisor, not the fork server, is now responsible for
the run.
"""

LONGEST_REQUEST = 8192
KEY_BYTES = 32
PR_SET_NAME = 15
STANDARD_OUTPUT = 1


def serve(channel: socket.socket, group: Group) -> None:
    """Fork a supervisor for each request until the worker closes the channel; wait for none of them.

    Each supervisor is in its own control group, within `group`.
    """
    supervisors = _Supervisors(channel, group)
    while supervisors.go_on():
        pass


@dataclass
class _Run:
    folder: Path
    group: JobGroup


class _Supervisors:
    """The living supervisors that this server forked. Any other child was left by a dead supervisor."""

    def __init__(self, channel: socket.socket, group: Group) -> None:
        self._channel = channel
        self._group = group
        self._runs: dict[int, _Run] = {}
        self._over: list[JobGroup] = []
        """The groups of supervisors that have ended."""
        self._ends, self._ended = os.pipe()
        for end in (self._ends, self._ended):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._ended, warn_on_full_buffer=False)
        supervisor.become_subreaper()

    def go_on(self) -> bool:
        """Wait for a request or an ended child, and handle it. Return False if the worker is gone."""
        poll = select.poll()
        for descriptor in (self._channel.fileno(), self._ends):
            poll.register(descriptor, select.POLLIN)
        ready = dict(poll.poll())
        if self._ends in ready:
            os.read(self._ends, LONGEST_REQUEST)
            self._end_what_is_left()
        return self._take() if self._channel.fileno() in ready else True

    def _take(self) -> bool:
        """Fork the supervisor that a request asks for. If the fork fails, the worker notices by the closed
        descriptors.
        """
        request, descriptors, *_ = socket.recv_fds(self._channel, LONGEST_REQUEST, 2)
        if not request:
            return False
        group = self._group.job()
        with contextlib.suppress(OSError):
            if (pid := os.fork()) == 0:
                _be_supervisor(self._channel, request, group, *descriptors)
            self._runs[pid] = _Run(_run_of(request), group)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _end_what_is_left(self) -> None:
        """Collect zombies, and kill processes that killed supervisors left. A supervisor that ends by itself leaves
        none.
        """
        odd = self._reap()
        if odd and (strays := self._strays()):
            for run_dir in filter(None, odd):
                with contextlib.suppress(OSError):  # they are ended even if the report fails
                    report_left_over(run_dir.parents[1] / LEFT_OVER_FILE, run_dir, None, strays)
            kill_all(self._strays)
            self._reap()
        self._over = [group for group in self._over if not group.remove()]

    def _reap(self) -> list[Path | None]:
        """Collect ended children. Return the runs whose supervisors were killed, and None for each adopted process."""
        odd = []
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if (run := self._runs.pop(ended[0], None)) is not None:
                    self._over.append(run.group)
                if run is None or ended[1] != 0:
                    odd.append(run.folder if run else None)
        return odd

    def _strays(self) -> set[int]:
        left = children(os.getpid()) - self._runs.keys()
        return left.union(*map(descendants, left))


def _run_of(request: bytes) -> Path:
    return Path(os.fsdecode(request[KEY_BYTES:]))


def _be_supervisor(channel: socket.socket, request: bytes, group: JobGroup, settled: int, log: int) -> None:
    """Become the supervisor of a run. Keep nothing of the fork server except the program in memory."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        _take_streams(channel, settled, log)
        _name(b"supervisor")
        group.enter()
        with contextlib.suppress(OSError):  # the worker is dead, the run goes on
            os.write(STANDARD_OUTPUT, TAKEN)
        supervisor.main(_run_of(request), request[:KEY_BYTES], group)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)  # never back into the fork server's loop


def _take_streams(channel: socket.socket, settled: int, log: int) -> None:
    """Set up the three standard streams, and close all other descriptors."""
    channel.detach()
    null = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((null, settled, log)):
        os.dup2(descriptor, number)
    os.closerange(FIRST_OTHER, LAST_OTHER)


def _name(name: bytes) -> None:
    """Set the name that `ps -e` and `top` show for this process."""
    with contextlib.suppress(AttributeError, OSError):
        kernel.libc().prctl(PR_SET_NAME, name, 0, 0, 0)


def main() -> None:
    """Load the modules that all supervisors need before forking, and keep the garbage collector from copying their
    memory.
    """
    group = control_group.from_environment()
    group.enter()
    _name(b"fork_server")
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=0), group)


if __name__ == "__main__":
    main()
