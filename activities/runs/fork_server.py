"""Starts supervisors in a few milliseconds: a process that has loaded their program already, and forks it for each run.

No library, nor `multiprocessing.forkserver`: that one keeps a descriptor for each child and starts its children as
parts of one program, here each must outlive the server and the worker. A program of its own, standard library only:
`python -I -S fork_server.py`, with its end of a socket pair as standard input. A request is one packet: the run's key
and folder, with two descriptors: what becomes the supervisor's standard output, and its log. It ends with the worker.

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
from pathlib import Path

if __name__ == "__main__":  # isolated mode knows the standard library only
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from activities.boxes import kernel, landlock
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.enter import boxed, described
from activities.runs import left_over, records, supervisor
from activities.runs.os_processes import children, descendants, identity, kill_all
from activities.runs.records import Kind

TAKEN = b"1"
"""What a supervisor writes first: from here on the run is its affair, and not the fork server's."""

LONGEST_REQUEST = 8192
KEY_BYTES = 32
PR_SET_NAME = 15
REHEARSALS = 20
STANDARD_OUTPUT = 1


def serve(channel: socket.socket) -> None:
    """Fork a supervisor for each request until the worker's end of the channel closes. Nothing here waits for a run."""
    supervisors = _Supervisors()
    while True:
        if not supervisors.wait_for(channel):
            continue
        request, descriptors, *_ = socket.recv_fds(channel, LONGEST_REQUEST, 2)
        if not request:
            return
        with contextlib.suppress(OSError):  # no process to be had: the closed descriptors tell the worker
            if supervisors.fork(Path(os.fsdecode(request[KEY_BYTES:]))) == 0:
                _be_supervisor(channel, request, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


class _Supervisors:
    """The supervisors that were forked here and live. Any other child was left by one that is dead."""

    def __init__(self) -> None:
        self._runs: dict[int, Path] = {}
        self._ends, writer = self._pipe = os.pipe()
        for end in self._pipe:
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        supervisor.become_subreaper()

    def wait_for(self, channel: socket.socket) -> bool:
        """Until there is a request, or a child has ended. Whether it is a request."""
        ready = select.select([channel.fileno(), self._ends], [], [])[0]
        if self._ends in ready:
            os.read(self._ends, LONGEST_REQUEST)
            self._end_what_is_left()
        return channel.fileno() in ready

    def fork(self, run_dir: Path) -> int:
        """As `os.fork`; the child has nothing of this."""
        pid = os.fork()
        if pid:
            self._runs[pid] = run_dir
        else:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in self._pipe:
                os.close(end)
        return pid

    def _end_what_is_left(self) -> None:
        """Keep no zombies, and nothing that a supervisor has left: one that ends in order leaves nothing."""
        odd = self._reap()
        if odd and (strays := self._strays()):
            for run_dir in filter(None, odd):
                with contextlib.suppress(OSError):  # they are ended, whether or not that can be told
                    left_over.tell(run_dir.parents[1] / left_over.FILE, run_dir, None, strays)
            kill_all(self._strays)
            self._reap()

    def _reap(self) -> list[Path | None]:
        """Collect who has ended. The runs whose supervisors were killed; None for a process that none looked after."""
        odd = []
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                run_dir = self._runs.pop(ended[0], None)
                if run_dir is None or ended[1] != 0:
                    odd.append(run_dir)
        return odd

    def _strays(self) -> set[int]:
        left = children(os.getpid()) - self._runs.keys()
        return left.union(*map(descendants, left))


def _be_supervisor(channel: socket.socket, request: bytes, settled: int, log: int) -> None:
    """All of this process from here on. It has nothing of the fork server's but the program in memory."""
    status = 1
    try:
        os.setsid()
        _take_streams(channel, settled, log)
        _name("supervisor")
        with contextlib.suppress(OSError):  # the worker is dead, the run goes on
            os.write(STANDARD_OUTPUT, TAKEN)
        supervisor.main(Path(os.fsdecode(request[KEY_BYTES:])), request[:KEY_BYTES])
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)  # never back into the loop of the fork server


def _take_streams(channel: socket.socket, settled: int, log: int) -> None:
    """The three standard streams, and no other descriptor: the fork server has none but the channel as its first."""
    channel.detach()
    null = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((null, settled, log)):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _name(name: str) -> None:
    """What `ps -e` and `top` show."""
    with contextlib.suppress(AttributeError, OSError):
        kernel.libc().prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def _rehearse() -> None:
    """What a supervisor works out before and after its command, for nothing: so it is done from here on in memory that
    is shared, and what is the same for all processes is known.
    """
    here = Path("/")
    identity(os.getpid())
    if sys.platform == "linux":
        landlock.abi()
    box = Box(BoxKind.BWRAP, Network.FULL, here, here, here, etc=here, read=(here,), uid=0)
    command = (sys.executable,)
    told = json.loads(json.dumps(described(box, command)))
    with boxed(told, command, {"PATH": os.defpath}):
        records.sealed(bytes(KEY_BYTES), here, Kind.EXIT, json.dumps({"started_at": time.time()}).encode())


def main() -> None:
    """Load once what every supervisor needs, and keep the collector from copying it in each of them."""
    _name("fork_server")
    with contextlib.suppress(OSError):
        for _ in range(REHEARSALS):
            _rehearse()
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=0))


if __name__ == "__main__":
    main()
