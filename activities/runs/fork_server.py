"""Starts supervisors in a few milliseconds: a process that has loaded their program already, and forks it for each run.

No library, nor `multiprocessing.forkserver`: that one keeps a descriptor for each child and starts its children as
parts of one program, here each must outlive the server and the worker. A program of its own, standard library only:
`python -I -S fork_server.py`, with its end of a socket pair as standard input. A request is one packet: the run's key
and folder, with two descriptors: what becomes the supervisor's standard output, and its log. It ends with the worker.
`fork_server.py first` makes each supervisor the first process of a namespace of its own.

What a supervisor leaves when it is killed becomes a child of the fork server, which reports it and ends it at once: a
process that nobody looks after must not be taken for a person's.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

if __name__ == "__main__":  # isolated mode knows the standard library only
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from activities.boxes import control_group, kernel, landlock
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.control_group import Group, JobGroup
from activities.boxes.enter import boxed, described
from activities.runs import left_over, records, supervisor
from activities.runs.os_processes import children, descendants, identity, kill_all, this_process
from activities.runs.records import Kind

TAKEN = b"1"
"""What a supervisor writes first: from here on the run is its affair, and not the fork server's."""

LONGEST_REQUEST = 8192
KEY_BYTES = 32
PR_SET_NAME = 15
REHEARSALS = 20
STANDARD_OUTPUT = 1


def serve(channel: socket.socket, fork: Callable[[], int], group: Group) -> None:
    """Have a supervisor ready for each request until the worker's end of the channel closes. Nothing waits for a run.

    A process is forked before it is asked for, and takes the next request itself: then the next one is forked. Each is
    in a control group of its own, within this group.
    """
    supervisors = _Supervisors(channel, fork, group)
    while supervisors.go_on():
        pass


class _Supervisors:
    """The supervisors that were forked here and live, and the spare one. Any other child was left by a dead one."""

    def __init__(self, channel: socket.socket, fork: Callable[[], int], group: Group) -> None:
        self._channel = channel
        self._new = fork
        self._group = group
        self._groups: dict[int, JobGroup] = {}
        self._over: list[JobGroup] = []
        """Those whose supervisors have ended."""
        self._runs: dict[int, Path] = {}
        self._spare: int | None = None
        self._told, self._telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ends, self._ended = os.pipe()
        self._told.setblocking(False)
        for end in (self._ends, self._ended):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._ended, warn_on_full_buffer=False)
        supervisor.become_subreaper()

    def go_on(self) -> bool:
        """One step: the spare has become a supervisor, or a child has ended. False when the worker is gone."""
        if self._spare is None:
            self._fork()
        poll = select.poll()
        poll.register(self._channel, 0 if self._spare else select.POLLIN)  # a hang-up is told in any case
        for each in (self._told.fileno(), self._ends):
            poll.register(each, select.POLLIN)
        ready = dict(poll.poll())
        self._hear()
        if self._ends in ready:
            os.read(self._ends, LONGEST_REQUEST)
            self._end_what_is_left()
        happened = ready.get(self._channel.fileno(), 0)
        if happened & select.POLLHUP:
            return False
        return self._refuse() if happened & select.POLLIN else True

    def _fork(self) -> None:
        """Have a spare one, unless there is no process to be had."""
        group = self._group.job()
        with contextlib.suppress(OSError):
            if (pid := self._new()) == 0:
                _be_spare(self._channel, self._telling, [self._told.detach(), self._ends, self._ended], group)
            self._spare = pid
            self._groups[pid] = group

    def _refuse(self) -> bool:
        """Without a process for it: the closed descriptors tell the worker."""
        request, descriptors, *_ = socket.recv_fds(self._channel, LONGEST_REQUEST, 2)
        for descriptor in descriptors:
            os.close(descriptor)
        return bool(request)

    def _hear(self) -> None:
        """Which run the spare one has taken. It tells that before anything else, so before its end can be seen."""
        with contextlib.suppress(BlockingIOError):
            run_dir = self._told.recv(LONGEST_REQUEST)
            if self._spare is not None:
                self._runs[self._spare] = Path(os.fsdecode(run_dir))
            self._spare = None

    def _end_what_is_left(self) -> None:
        """Keep no zombies, and nothing that a supervisor has left: one that ends in order leaves nothing."""
        odd = self._reap()
        if odd and (strays := self._strays()):
            for run_dir in filter(None, odd):
                with contextlib.suppress(OSError):  # they are ended, whether or not that can be told
                    left_over.tell(run_dir.parents[1] / left_over.FILE, run_dir, None, strays)
            kill_all(self._strays)
            self._reap()
        self._over = [each for each in self._over if not each.remove()]

    def _reap(self) -> list[Path | None]:
        """Collect who has ended. The runs whose supervisors were killed; None for a process that none looked after."""
        odd = []
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                run_dir = self._runs.pop(ended[0], None)
                self._over += filter(None, [self._groups.pop(ended[0], None)])
                if ended[0] == self._spare:
                    self._spare = None
                elif run_dir is None or ended[1] != 0:
                    odd.append(run_dir)
        return odd

    def _strays(self) -> set[int]:
        left = children(os.getpid()) - self._runs.keys() - {self._spare}
        return left.union(*map(descendants, left))


def _be_spare(channel: socket.socket, telling: socket.socket, others: Iterable[int], group: JobGroup) -> None:
    """All of this process from here on: it waits for a request, and is its supervisor then.

    It has nothing of the fork server's but the program in memory, and ends with it as long as it waits.
    """
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in others:
            os.close(descriptor)
        os.setsid()
        _control(PR_SET_NAME, b"spare")
        _control(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        group.enter()
        request, descriptors, *_ = socket.recv_fds(channel, LONGEST_REQUEST, 2)
        if request:
            telling.send(request[KEY_BYTES:])
            telling.close()
            _control(kernel.PR_SET_PDEATHSIG, 0)
            _be_supervisor(channel, request, group, *descriptors)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)  # never back into the loop of the fork server


def _be_supervisor(channel: socket.socket, request: bytes, group: JobGroup, settled: int, log: int) -> None:
    _take_streams(channel, settled, log)
    _control(PR_SET_NAME, b"supervisor")
    with contextlib.suppress(OSError):  # the worker is dead, the run goes on
        os.write(STANDARD_OUTPUT, TAKEN)
    supervisor.main(Path(os.fsdecode(request[KEY_BYTES:])), request[:KEY_BYTES], group)


def _take_streams(channel: socket.socket, settled: int, log: int) -> None:
    """The three standard streams, and no other descriptor: the fork server has none but the channel as its first."""
    channel.detach()
    null = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((null, settled, log)):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _control(what: int, value: bytes | int) -> None:
    """Its name is what `ps -e` and `top` show of a process."""
    with contextlib.suppress(AttributeError, OSError):
        kernel.libc().prctl(what, value, 0, 0, 0)


def _rehearse(*, first: bool) -> None:
    """What a supervisor works out before and after its command, for nothing: so it is done from here on in memory that
    is shared, and what is the same for all processes is known.
    """
    here = Path("/usr")
    identity(this_process())
    if sys.platform == "linux":
        landlock.abi()
    box = Box(BoxKind.BWRAP, Network.FULL, here, here, here, etc=here, read=(here,), uid=0, own_root=first)
    command = (sys.executable,)
    told = json.loads(json.dumps(described(box, command)))
    with boxed(told, command, {"PATH": os.defpath}, first=first):
        records.sealed(bytes(KEY_BYTES), here, Kind.EXIT, json.dumps({"started_at": time.time()}).encode())


def main() -> None:
    """Load once what every supervisor needs, and keep the collector from copying it in each of them."""
    group = control_group.told()
    group.enter()
    first = sys.argv[1:] == [supervisor.FIRST]
    _control(PR_SET_NAME, b"fork_server")
    with contextlib.suppress(OSError):
        for _ in range(REHEARSALS):
            _rehearse(first=first)
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=0), kernel.fork_as_first if first else os.fork, group)


if __name__ == "__main__":
    main()
