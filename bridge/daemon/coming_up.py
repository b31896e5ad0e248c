"""Progress of a starting group, as its observer sees it: the member that is starting, and the start time of each."""

import time
from collections.abc import Callable

from bridge.machine.daemon_state import ChildPhase, DaemonState


class ComingUp:
    """An observer of a starting group, polled until the group works."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._took: dict[str, float] = {}

    def look(self, state: DaemonState) -> str:
        """Return the started members with their times, and the starting one: `server 1.2 s, worker 3 s …`."""
        now = self._clock()
        for child in state.children:
            if child.phase is not ChildPhase.WAITING:
                self._since.setdefault(child.name, now)
            if child.phase is ChildPhase.RUNNING:
                self._took.setdefault(child.name, now - self._since[child.name])
        return ", ".join(self._said(child.name, now) for child in state.children if child.name in self._since)

    @property
    def waits_for(self) -> str:
        """The member that is starting; empty if there is none."""
        begun = [name for name in self._since if name not in self._took]
        return begun[-1] if begun else ""

    def _said(self, name: str, now: float) -> str:
        took = self._took.get(name)
        return f"{name} {now - self._since[name]:.0f} s …" if took is None else f"{name} {took:.1f} s"


def ending(state: DaemonState) -> str:
    """Return which members of a stopping group still run; the next one to stop comes first."""
    left = [child.name for child in reversed(state.children) if child.phase is not ChildPhase.STOPPED]
    return f"stopping {', '.join(left)}" if left else "stopping"
