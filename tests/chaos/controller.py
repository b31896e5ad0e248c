"""The side of the test: hears of each arrival at a station, and lets the fault of a case strike there."""

import contextlib
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.chaos.protocol import GO, Arrival

Strike = Callable[[Arrival], str]
SUBJECT = re.compile(r"(?:job|task|prun)-([0-9a-z]{8,40})")
STARTED = "tree started"
"""The first station of a tree that a person starts."""
LONGEST_START = 5.0


@dataclass
class Aim:
    """Where a case's fault is to strike: the `nth` arrival at a station that is about its tree."""

    station: str
    nth: int
    strike: Strike
    arrival: Arrival | None = None
    """The arrival at which it struck."""
    seen: int = 0
    over: bool = False
    """True once its case has ended: the fault strikes no more."""


@dataclass
class Controller:
    """A socket that stations ask. Without an aim every process goes on at once."""

    address: Path
    arrivals: list[Arrival] = field(default_factory=list)
    _owners: dict[str, Aim] = field(default_factory=dict)
    """The aim of each tree or run, by its id."""
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _starting: threading.Lock = field(default_factory=threading.Lock)
    _expected: Aim | None = None
    """The aim of the tree that is being started."""
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

    @contextlib.contextmanager
    def expecting(self, aim: Aim) -> Iterator[None]:
        """Start one tree at a time: what is about a tree that nobody knows yet is about this one."""
        with self._starting:
            self._expected = aim
            try:
                yield
            finally:
                with self._changed:
                    self._expected = None
                    self._changed.notify_all()

    def owns(self, subject: str, aim: Aim) -> None:
        """Say that a tree or a run is that of an aim."""
        with self._changed:
            self._owners[subject_of(subject)] = aim
            self._changed.notify_all()

    def counts(self, name: str) -> Counter[str]:
        """Return how often each station was reached for a tree or a run."""
        return Counter(
            arrival.station for arrival in list(self.arrivals) if subject_of(arrival.subject) == subject_of(name)
        )

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: socket.socket) -> None:
        with line, line.makefile() as request, contextlib.suppress(OSError, ValueError):  # it may die while it waits
            message = json.loads(request.readline())
            station = f"{message['station']}: {message['detail']}" if message["detail"] else message["station"]
            pid, number, thread = message["pid"], message["number"], message["thread"]
            arrival = Arrival(station, message["subject"], pid, number, time.time(), thread)
            answer = GO if self._over else self._meet(arrival)
            line.sendall(answer.encode() + b"\n")

    def _meet(self, arrival: Arrival) -> str:
        aim = self._owner(arrival)
        with self._changed:
            self.arrivals.append(arrival)
            if aim is None or aim.over or aim.arrival is not None or aim.station != arrival.station:
                return GO
            aim.seen += 1
            if aim.seen < aim.nth:
                return GO
            aim.arrival = arrival
        return aim.strike(arrival)

    def _owner(self, arrival: Arrival) -> Aim | None:
        """Return the aim of the tree that an arrival is about. Wait for a tree that is just being started."""
        subject = subject_of(arrival.subject)
        with self._changed:
            if subject not in self._owners and self._expected and arrival.station == STARTED:
                self._owners[subject] = self._expected
                self._changed.notify_all()
            self._changed.wait_for(lambda: subject in self._owners or self._expected is None, LONGEST_START)
            return self._owners.get(subject)


def subject_of(name: str) -> str:
    """Return the tree or run that a job, a task, a branch, a folder or a notification belongs to."""
    match = SUBJECT.search(name)
    return match[1] if match else name
