"""Network lines that a test cuts, slows, resets or leaves half open: a forwarder between a host and a server."""

import contextlib
import ctypes
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

CHUNK = 65_536
UNSPECIFIED = bytes(16)
"""An address of no family: to connect a TCP socket to it resets its connection."""


@dataclass
class Line:
    """A forwarder from a port of its own to a server's; while it is cut, nothing passes and nobody is told."""

    target: tuple[str, int]
    delay: float = 0.0
    """Seconds that each chunk takes."""
    loses: Callable[[bytes], bool] | None = None
    """Chooses the reply of the server that is lost, with its connection: the first for which it is true."""
    withheld: int = 0
    """Bytes that came and were not passed on at once: those of a cut or half-open line, and of a lost reply."""
    resets: int = 0
    """Connections that were reset."""
    delayed: int = 0
    """Chunks that were delayed."""
    _server: socket.socket = field(init=False)
    _open: threading.Event = field(default_factory=threading.Event)
    _sockets: set[socket.socket] = field(default_factory=set)
    _near: set[socket.socket] = field(default_factory=set)
    """The callers' ends of the connections."""
    _deserted: set[socket.socket] = field(default_factory=set)
    """Callers' ends whose other end is gone, and that are not told."""
    _ended: bool = False

    def __post_init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        port: int = self._server.getsockname()[1]
        return port

    def cut(self) -> None:
        """Let nothing pass any more, as a pulled cable does: connections stay open, and silent."""
        self._open.clear()

    def mend(self) -> None:
        """Let everything through. Connections that were cut or half open are reset."""
        if not self._open.is_set():
            self._deserted |= set(self._sockets)
        for socket_ in list(self._deserted):
            _shut(socket_)
        self._deserted.clear()
        self.delay, self.loses = 0.0, None
        self._open.set()

    def reset(self) -> None:
        """Reset all connections, as a firewall does that forgot them; new ones pass."""
        for near in list(self._near):
            self.resets += _reset(near)
        for far in list(self._sockets - self._near):
            _reset(far)

    def desert(self) -> None:
        """Leave all connections half open: the server's ends are gone, the callers' ends stay; new ones pass."""
        self._deserted |= self._near
        for socket_ in list(self._sockets - self._near):
            _reset(socket_)

    def close(self) -> None:
        self._ended = True
        self.cut()
        self.mend()
        _shut(self._server)

    def _accept(self) -> None:
        while not self._ended:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        self._sockets.add(near)
        self._open.wait()
        try:
            far = socket.create_connection(self.target, timeout=10)
        except OSError:
            _shut(near)
            return
        far.settimeout(None)
        self._sockets.add(far)
        self._near.add(near)
        threading.Thread(target=self._copy, args=(near, far), daemon=True).start()
        self._copy(far, near)

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        pause = threading.Event()
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK):
                if not self._open.is_set() or source in self._deserted:
                    self.withheld += len(chunk)
                self._open.wait()
                if source in self._deserted:
                    continue
                if self.delay:
                    self.delayed += 1
                    pause.wait(self.delay)
                if sink in self._near and self.loses is not None and self.loses(chunk):
                    self.loses = None
                    self.withheld += len(chunk)
                    break
                sink.sendall(chunk)
        for socket_ in {source, sink} - self._deserted:
            self._sockets.discard(socket_)
            self._near.discard(socket_)
            _shut(socket_)


def _shut(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()


def _reset(line: socket.socket) -> bool:
    """Reset a connection; return whether it was open."""
    number = line.fileno()
    return number >= 0 and ctypes.CDLL(None).connect(number, UNSPECIFIED, len(UNSPECIFIED)) == 0


@contextlib.contextmanager
def line_to(host: str, port: int) -> Iterator[Line]:
    """Keep a line during the context."""
    line = Line((host, port))
    try:
        yield line
    finally:
        line.close()
