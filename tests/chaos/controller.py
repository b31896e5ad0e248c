"""The side of the test: hears of each arrival at a station, and lets the fault of a case strike there."""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.chaos.protocol import GO, Arrival

Strike = Callable[[Arrival], str]


@dataclass
class Aim:
    """Where a case's fault is to strike: the `nth` arrival at a station that is about its tree."""

    station: str
    nth: int
    names: set[str]
    """What a subject may be called: the tree's root, its task. Empty until the tree has started."""
    strike: Strike
    arrival: Arrival | None = None
    """The arrival at which it struck."""
    seen: int = 0


@dataclass
class Controller:
    """A socket that stations ask. Without an aim every process goes on at once."""

    address: Path
    aims: list[Aim] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: bool = False

    def __post_init__(self) -> None:
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(self.address))
        self._server.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._server.close()

    def release(self) -> None:
        """Let everything go on from here on."""
        self._over = True

    def counts(self, *names: str) -> Counter[str]:
        """Return how often each station was reached by what bears one of these names."""
        return Counter(each.station for each in list(self.arrivals) if any(name in each.subject for name in names))

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: socket.socket) -> None:
        with line, line.makefile() as told:
            try:
                said = json.loads(told.readline())
                detail = f": {said['detail']}" if said["detail"] else ""
                arrival = Arrival(said["station"] + detail, said["subject"], said["pid"], said["number"], time.time())
                answer = GO if self._over else self._meet(arrival)
                line.sendall(answer.encode() + b"\n")
            except (OSError, ValueError):  # the process died while it waited
                return

    def _meet(self, arrival: Arrival) -> str:
        with self._lock:
            self.arrivals.append(arrival)
            aim = next((aim for aim in self.aims if self._is_hit(aim, arrival)), None)
            if aim is None:
                return GO
            aim.arrival = arrival
        return aim.strike(arrival)

    def _is_hit(self, aim: Aim, arrival: Arrival) -> bool:
        if aim.arrival is not None or aim.station != arrival.station:
            return False
        if not any(name in arrival.subject for name in aim.names):
            return False
        aim.seen += 1
        return aim.seen >= aim.nth
