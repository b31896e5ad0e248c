"""The way out of a box with the network `model`: HTTP's CONNECT, and plain requests, to the hosts it names.

A process of its own for each run, forked by the run's supervisor and ended with it. It looks at no content: what goes
through is mostly encrypted, and a host that is let through can be told anything.
"""

import _thread  # `threading` makes its locks anew in every process that a supervisor, too, forks
import contextlib
import encodings.idna  # noqa: F401  # names are looked up with it; the account of agents could not load it any more
import os
import re
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from activities.boxes.box import Box
from activities.boxes.hosts import Target, counts, matching
from activities.boxes.kernel import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, libc
from activities.boxes.network import LOOPBACK

HEAD_BYTES = 65_536
HEAD_SECONDS = 30.0
DIAL_SECONDS = 20.0
PIECE = 65_536
CONNECTIONS = 256
SOCKETS = 64
DESCRIPTORS = 1024
"""A supervisor has a dozen; the proxy needs none of them."""

_CONNECT = re.compile(rb"CONNECT ([^\s]+) HTTP/1\.[01]\r\n", re.ASCII)
_PLAIN = re.compile(rb"([A-Z]+) http://([^/\s?#@]+)([^\s]*) (HTTP/1\.[01])\r\n", re.ASCII)


class RefusedError(Exception):
    """A host that is not let through, or that cannot be reached; what the program is told."""

    def __init__(self, status: str, said: str) -> None:
        super().__init__(said)
        self.status = status


@dataclass
class Proxy:
    """One run's proxy."""

    box: Box
    note: Callable[[str], None]
    """Where it is written down what was refused; once for each host."""
    _noted: set[str] = field(default_factory=set)
    _room: int = field(default_factory=lambda: os.eventfd(CONNECTIONS, os.EFD_SEMAPHORE | os.EFD_CLOEXEC))
    """A semaphore of the kernel's."""

    def serve(self, sockets: list[socket.socket]) -> None:
        """The first socket is the proxy's, each further one stands for a service of this machine."""
        first, *others = sockets
        for other in others:
            _thread.start_new_thread(self._accept, (other, self._to_service))
        self._accept(first, self._to_host)

    def _accept(self, listening: socket.socket, handle: Callable[[socket.socket], None]) -> None:
        while True:
            os.eventfd_read(self._room)
            program, _ = listening.accept()
            _thread.start_new_thread(self._handle, (program, handle))

    def _handle(self, program: socket.socket, handle: Callable[[socket.socket], None]) -> None:
        try:
            with program, contextlib.suppress(OSError):
                handle(program)
        finally:
            os.eventfd_write(self._room, 1)

    def _to_service(self, program: socket.socket) -> None:
        with socket.create_connection((LOOPBACK, program.getsockname()[1]), DIAL_SECONDS) as there:
            _join(program, there)

    def _to_host(self, program: socket.socket) -> None:
        program.settimeout(HEAD_SECONDS)
        head, rest = _head(program)
        try:
            there, first = self._asked_for(head)
        except RefusedError as refused:
            self._note(str(refused))
            body = f"{refused}\n".encode()
            told = f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
            program.sendall(told.encode() + b"Connection: close\r\n\r\n" + body)
            return
        with there:
            if first:
                there.sendall(first)
            else:
                program.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            there.sendall(rest)
            _join(program, there)

    def _asked_for(self, head: bytes) -> tuple[socket.socket, bytes]:
        """The host, and what it is sent first: nothing through a tunnel, else the request as a server takes it."""
        if tunnel := _CONNECT.match(head):
            return self._dial(Target.read(tunnel[1].decode("latin-1"))), b""
        if plain := _PLAIN.match(head):
            line = b" ".join((plain[1], plain[3] or b"/", plain[4])) + b"\r\n"
            return self._dial(Target.read(plain[2].decode("latin-1"), 80)), line + head[plain.end() :]
        raise RefusedError("400 Bad Request", "this is a proxy: ask it with CONNECT, or for a whole http:// address")

    def _dial(self, target: Target | None) -> socket.socket:
        entry = matching(target, self.box.hosts) if target else None
        if target is None or entry is None:
            raise RefusedError(
                "403 Forbidden", f"{target} is not let through by this box: [runtimes.<name>].hosts has no such host"
            )
        try:
            return self._through(target) if self.box.upstream else _direct(target, entry)
        except OSError as error:
            raise RefusedError("502 Bad Gateway", f"{target} cannot be reached: {error}") from None

    def _through(self, target: Target) -> socket.socket:
        """By the machine's own proxy."""
        upstream = Target.read(self.box.upstream.rpartition("/")[2], 80)
        if upstream is None:
            raise OSError(f"{self.box.upstream} is no proxy that can be spoken to")
        there = socket.create_connection((upstream.host, upstream.port), DIAL_SECONDS)
        there.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head, _ = _head(there, at_once=1)  # what the host says first is not ours
        if b" 200" not in head.split(b"\r\n", 1)[0]:
            there.close()
            raise OSError("the machine's own proxy refuses it")
        return there

    def _note(self, said: str) -> None:
        if said not in self._noted and len(self._noted) < SOCKETS:
            self._noted.add(said)
            self.note(said)


def _direct(target: Target, entry: str) -> socket.socket:
    """To an address of the host that counts; looked up once, so it cannot lead elsewhere a moment later."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = [where for *_, where in found if counts(str(where[0]), entry)]
    if not addresses:
        raise RefusedError("403 Forbidden", f"{target} leads into this machine or its local network")
    for address in addresses:
        try:
            return socket.create_connection((str(address[0]), target.port), DIAL_SECONDS)
        except OSError as error:
            last = error
    raise last


def _head(program: socket.socket, at_once: int = PIECE) -> tuple[bytes, bytes]:
    """A request up to its blank line, and what came behind it."""
    read = b""
    while b"\r\n\r\n" not in read:
        piece = program.recv(at_once)
        if not piece or len(read) > HEAD_BYTES:
            raise OSError("no request")
        read += piece
    head, _, rest = read.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def _join(one: socket.socket, other: socket.socket) -> None:
    """Both ways, until both have nothing more to say. A model may think for as long as it likes."""
    one.settimeout(None)
    other.settimeout(None)
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(_copy_back, (other, one, done))
    _copy(one, other)
    done.acquire()


def _copy_back(source: socket.socket, target: socket.socket, done: "_thread.LockType") -> None:
    try:
        _copy(source, target)
    finally:
        done.release()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def fork(box: Box) -> tuple[int, socket.socket]:
    """Start a proxy that waits for its sockets on the channel that is returned."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            _be_proxy(box, theirs)
        finally:
            os._exit(1)
    theirs.close()
    return pid, ours


def _be_proxy(box: Box, channel: socket.socket) -> None:
    """All of this process from here on. It is no more than the agents are, and ends with its supervisor."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if box.uid is not None:
        os.setgroups([])
        os.setresgid(box.uid, box.uid, box.uid)
        os.setresuid(box.uid, box.uid, box.uid)
        libc().prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # what it reaches is not its account's: nobody of that looks into it
    os.closerange(3, channel.fileno())
    os.closerange(channel.fileno() + 1, DESCRIPTORS)
    libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _, descriptors, *_ = socket.recv_fds(channel, 1, SOCKETS)
    channel.close()
    if descriptors:
        Proxy(box, _to_log).serve([socket.socket(fileno=each) for each in descriptors])


def _to_log(said: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"network: {said}\n")
        sys.stderr.flush()
