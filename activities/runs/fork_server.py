"""Starts supervisors in a few milliseconds: a process that has loaded their program already, and forks it for each run.

No library, nor `multiprocessing.forkserver`: that one keeps a descriptor for each child and starts its children as
parts of one program, here each must outlive the server and the worker. A program of its own, standard library only:
`python -I -S fork_server.py`, with its end of a socket pair as standard input. A request is one packet: the run's key
and folder, with two descriptors: what becomes the supervisor's standard output, and its log. It ends with the worker.
"""

import contextlib
import gc
import os
import signal
import socket
import sys
from pathlib import Path

if __name__ == "__main__":  # isolated mode knows the standard library only
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from activities.runs import supervisor
from activities.runs.os_processes import identity

TAKEN = b"1"
"""What a supervisor writes first: from here on the run is its affair, and not the fork server's."""

LONGEST_REQUEST = 8192
KEY_BYTES = 32
STANDARD_OUTPUT = 1


def serve(channel: socket.socket) -> None:
    """Fork a supervisor for each request until the worker's end of the channel closes. Nothing here waits for a run."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel keeps no zombies for us
    while True:
        request, descriptors, *_ = socket.recv_fds(channel, LONGEST_REQUEST, 2)
        if not request:
            return
        with contextlib.suppress(OSError):  # no process to be had: the closed descriptors tell the worker
            if os.fork() == 0:
                _be_supervisor(channel, request, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


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
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(name)


def main() -> None:
    """Load once what every supervisor needs, and keep the collector from copying it in each of them."""
    _name("fork_server")
    identity(os.getpid())  # it keeps what is the same for all processes
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=0))


if __name__ == "__main__":
    main()
