"""The proxy of boxes with the network `model`: HTTP CONNECT and plain requests, to allowed hosts only.

Each run has its own proxy process, which its supervisor forks at the first connection, and which ends with the
supervisor. The proxy inspects no content: most of it is encrypted, and an allowed host can be sent anything.
"""

import _thread  # `threading` makes its locks anew in every forked process
import contextlib
import encodings.idna  # noqa: F401  # names are looked up with it; the account of agents could not load it any more
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from activities.boxes.allowed_hosts import ANY, HostEntry, Target, is_local_name, is_refused, matching
from activities.boxes.box import Box
from activities.boxes.kernel import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, libc
from activities.boxes.network import LOOPBACK, local_ports
from activities.boxes.start import FIRST_OTHER

HEAD_BYTES = 65_536
HEAD_SECONDS = 30.0
DIAL_SECONDS = 20.0
PIECE = 65_536
CONNECTIONS = 256
_SHOWN = 100
NOTES = 64
DESCRIPTORS = 1024
"""Descriptors to close: a supervisor has a dozen, and the proxy does not need them."""

_REQUEST = re.compile(rb"([A-Z]+) ([!-~]+) (HTTP/1\.[01])", re.ASCII)
_ADDRESS = re.compile(r"http://([^/?#]+)(/[^#]*|\?[^#]*|)")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t -~\x80-\xff]*")
_ONCE = (b"host", b"content-length", b"transfer-encoding")
_OURS = (b"host", b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization")
"""Headers that are not passed on: those for a proxy, and those that this proxy writes itself."""

_PROXY = re.compile(r"(?:http://)?(\[[0-9A-Fa-f:.]+\]|[^\s/@:\[\]]+)(?::([0-9]{1,5}))?/?", re.ASCII)
_UPSTREAM = "the machine's own proxy"
_TO_THIS_MACHINE = "leads to this machine: its services are named in [runtimes.<name>].hosts as 127.0.0.1:port"
_TO_NEIGHBOURS = (
    "leads into this machine or its local network: name it in [runtimes.<name>].hosts, "
    "a service of this machine as 127.0.0.1:port"
)
T = TypeVar("T")


class HostRefusedError(Exception):
    """The box doesn't allow the host, or the host can't be reached. The program in the box gets the message."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Request:
    """A program's request to the proxy."""

    target: Target
    first: bytes
    """Bytes to send to the host first: empty for a tunnel, else the request without the proxy's headers."""

    @classmethod
    def read(cls, head: bytes) -> "Request":
        """Parse a request strictly, up to its blank line."""
        line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        request, headers = _REQUEST.fullmatch(line), [_HEADER.fullmatch(each) for each in lines]
        names = [each[1].lower() for each in headers if each]
        framed_twice = b"transfer-encoding" in names and b"content-length" in names
        if len(names) < len(lines) or framed_twice or any(names.count(each) > 1 for each in _ONCE):
            raise HostRefusedError("400 Bad Request", "a header of the request is invalid or repeated")
        if request and request[1] == b"CONNECT":
            return cls(_target(request[2].decode()), b"")
        address = _ADDRESS.fullmatch(request[2].decode()) if request else None
        if request is None or address is None:
            message = "this is a proxy: ask it with CONNECT, or for a whole http:// address"
            raise HostRefusedError("400 Bad Request", message)
        target, path = _target(address[1], 80), address[2]
        kept = [each for each, name in zip(lines, names, strict=True) if name not in _OURS]
        host = target.authority if target.port == 80 else str(target)
        path = path if path.startswith("/") else f"/{path}"
        own = [f"{request[1].decode()} {path} ".encode() + request[3], f"Host: {host}".encode(), b"Connection: close"]
        return cls(target, b"\r\n".join((*own, *kept, b"", b"")))


def _target(text: str, port: int | None = None) -> Target:
    if target := Target.read(text, port):
        return target
    raise HostRefusedError(
        "400 Bad Request", f"{text[:_SHOWN]!r} is not a host and port: write host:port or [address]:port"
    )


@dataclass
class Proxy:
    """The proxy of one run."""

    box: Box
    note: Callable[[str], None]
    """Logs a refusal; called once for each text."""
    _noted: set[str] = field(default_factory=set)
    _unknown: set[str] = field(default_factory=set)
    """Names that could not be looked up here, and are left to the machine's own proxy."""
    _room: int = field(default_factory=lambda: os.eventfd(CONNECTIONS, os.EFD_SEMAPHORE | os.EFD_CLOEXEC))
    """A semaphore of the kernel (eventfd) that limits connections."""

    def serve(self, sockets: list[socket.socket]) -> None:
        """Serve as proxy on the first socket, and forward each further one to a service of this machine."""
        first, *others = sockets
        for other in others:
            _thread.start_new_thread(self._accept, (other, self._to_service))
        self._accept(first, self._to_host)

    def _accept(self, listening: socket.socket, handle: Callable[[socket.socket], None]) -> None:
        while True:
            os.eventfd_read(self._room)
            program, _ = listening.accept()
            try:
                _thread.start_new_thread(self._handle, (program, handle))
            except RuntimeError:  # agents have used up the threads of their account; other processes of it go on
                program.close()
                os.eventfd_write(self._room, 1)

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
            request = Request.read(head)
            there = self._dial(request.target)
        except HostRefusedError as refused:
            self._note(str(refused))
            body = f"{refused}\n".encode()
            answer = f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
            program.sendall(answer.encode() + b"Connection: close\r\n\r\n" + body)
            return
        with there:
            if request.first:
                there.sendall(request.first)
            else:
                program.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            there.sendall(rest)
            _join(program, there)

    def _dial(self, target: Target) -> socket.socket:
        entry, is_local = matching(target, self.box.hosts), target.host in (LOOPBACK, "localhost")
        try:
            if is_local and target.port in local_ports(self.box):  # the program ignores NO_PROXY
                return socket.create_connection((LOOPBACK, target.port), DIAL_SECONDS)
            if entry is None:
                raise _forbidden(f"{target} is blocked by this box: it is not in [runtimes.<name>].hosts")
            addresses = self._addresses(target, entry)
            if not self.box.upstream:
                return _first(addresses, lambda address: socket.create_connection((address, target.port), DIAL_SECONDS))
            asked = [Target(each, target.port) for each in addresses] if entry.is_pattern else [target]
            return _first(asked, self._through)
        except OSError as error:
            raise HostRefusedError("502 Bad Gateway", f"{target} cannot be reached: {error}") from None

    def _addresses(self, target: Target, entry: HostEntry) -> list[str]:
        """Resolve the host once. Connect only to these addresses: a second lookup of its name could lead elsewhere.

        The machine's own proxy resolves names itself. If a pattern allows the host, it is asked for the address. If an
        entry names the host in full, it is asked for the name, even one unknown here. A name that leads to this machine
        is refused.
        """
        written_out = not entry.is_pattern
        left_to_upstream = written_out and bool(self.box.upstream)
        if entry.host == ANY and is_local_name(target.host):
            raise _forbidden(f"{target} {_TO_NEIGHBOURS}")
        if left_to_upstream and target.host in self._unknown:
            return []
        try:
            resolved = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if left_to_upstream:
                self._unknown.add(target.host)  # a network without DNS of the internet may take long to fail
                return []
            hint = f"; name it in [runtimes.<name>].hosts to leave that to {_UPSTREAM}" if self.box.upstream else ""
            raise OSError(f"{error.strerror}{hint}") from None
        addresses = [str(where[0]) for *_, where in resolved]
        good = [each for each in addresses if not is_refused(each, written_out=written_out)]
        if not good or (left_to_upstream and good != addresses):
            raise _forbidden(f"{target} {_TO_THIS_MACHINE if written_out else _TO_NEIGHBOURS}")
        return good

    def _through(self, target: Target) -> socket.socket:
        """Connect through the machine's own proxy."""
        upstream = _PROXY.fullmatch(self.box.upstream)
        if upstream is None:  # the setting may hold a password: don't show it
            raise OSError(f"{_UPSTREAM} has no address of the form http://host:port")
        there = socket.create_connection((upstream[1].strip("[]"), int(upstream[2] or 80)), DIAL_SECONDS)
        there.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head, _ = _head(there, at_once=1)  # one byte at a time: the next byte is the host's
        if head.split(b"\r\n", 1)[0].split()[1:2] != [b"200"]:
            there.close()
            raise OSError(f"{_UPSTREAM} refuses {target}")
        return there

    def _note(self, message: str) -> None:
        if message not in self._noted and len(self._noted) < NOTES:
            self._noted.add(message)
            self.note(message)


def _forbidden(message: str) -> HostRefusedError:
    return HostRefusedError("403 Forbidden", message)


def _first(candidates: Sequence[T], dial: Callable[[T], socket.socket]) -> socket.socket:
    """Connect to the first reachable candidate; if all fail, raise the last error."""
    for candidate in candidates:
        try:
            return dial(candidate)
        except OSError as error:
            last = error
    raise last


def _head(program: socket.socket, at_once: int = PIECE) -> tuple[bytes, bytes]:
    """Read a request up to its blank line. Return it, and the bytes after it."""
    read = b""
    while b"\r\n\r\n" not in read:
        piece = program.recv(at_once)
        if not piece or len(read) > HEAD_BYTES:
            raise OSError("no request")
        read += piece
    head, _, rest = read.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def _join(one: socket.socket, other: socket.socket) -> None:
    """Copy bytes both ways until both sides have closed. No timeout: a model may think for long."""
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


@dataclass(frozen=True)
class WaitingProxy:
    """The sockets of a proxy that is forked at the first connection, since many runs never make one."""

    box: Box
    sockets: list[socket.socket]

    def fork(self) -> int | None:
        """Fork the proxy, which takes over the sockets. Return None if that fails; then no process listens on them."""
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            _to_log(f"the proxy cannot be started: {error}")
            pid = None
        if pid == 0:
            try:
                _be_proxy(self, parent)
            finally:
                os._exit(1)
        for listener in self.sockets:
            listener.close()
        return pid


def _be_proxy(waiting: WaitingProxy, parent: int) -> None:
    """Run the proxy in this forked process, with the rights of agents. It ends with its supervisor."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    uid = waiting.box.uid
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        libc().prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # others of its account may not inspect it
    begin = FIRST_OTHER
    for descriptor in (*sorted(each.fileno() for each in waiting.sockets), DESCRIPTORS):
        os.closerange(begin, descriptor)
        begin = descriptor + 1
    libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == parent:
        Proxy(waiting.box, _to_log).serve(waiting.sockets)


def _to_log(message: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"network: {message}\n")
        sys.stderr.flush()
