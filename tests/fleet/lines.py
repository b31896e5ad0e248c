"""Network lines that a test can cut: a forwarder between a host and a server."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

CHUNK = 65_536


@dataclass
class Line:
    """A forwarder from a port of its own to a server's; while it is cut, nothing passes and nobody is told."""

    target: tuple[str, int]
    delay: float = 0.0
    """Seconds that each chunk takes."""
    _server: socket.socket = field(init=False)
    _open: threading.Event = field(default_factory=threading.Event)
    _sockets: set[socket.socket] = field(default_factory=set)
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
        """Let new connections through; those of before the cut are reset."""
        for socket_ in list(self._sockets):
            _shut(socket_)
        self._open.set()

    def close(self) -> None:
        self._ended = True
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
        threading.Thread(target=self._copy, args=(near, far), daemon=True).start()
        self._copy(far, near)

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        pause = threading.Event()
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK):
                self._open.wait()
                if self.delay:
                    pause.wait(self.delay)
                sink.sendall(chunk)
        for socket_ in (source, sink):
            self._sockets.discard(socket_)
            _shut(socket_)


def _shut(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()


@contextlib.contextmanager
def line_to(host: str, port: int) -> Iterator[Line]:
    """Keep a line during the context."""
    line = Line((host, port))
    try:
        yield line
    finally:
        line.close()
