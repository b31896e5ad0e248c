"""Which member of the group is waited for, and how long each took, as far as who waits has seen it."""

import time
from collections.abc import Callable

from bridge.machine.daemon_state import ChildPhase, DaemonState


class ComingUp:
    """Looked at again and again while a group starts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._took: dict[str, float] = {}

    def look(self, state: DaemonState) -> str:
        """`server 1.2 s, worker 3 s …`: those that work, and the one that is waited for."""
        now = self._clock()
        for child in state.children:
            if child.phase is not ChildPhase.WAITING:
                self._since.setdefault(child.name, now)
            if child.phase is ChildPhase.RUNNING:
                self._took.setdefault(child.name, now - self._since[child.name])
        return ", ".join(self._said(child.name, now) for child in state.children if child.name in self._since)

    @property
    def waits_for(self) -> str:
        """The member that has begun and does not work yet; empty when none has."""
        begun = [name for name in self._since if name not in self._took]
        return begun[-1] if begun else ""

    def _said(self, name: str, now: float) -> str:
        took = self._took.get(name)
        return f"{name} {now - self._since[name]:.0f} s …" if took is None else f"{name} {took:.1f} s"


def ending(state: DaemonState) -> str:
    """Which members of a group that is being stopped still run; the last one is stopped first."""
    left = [child.name for child in reversed(state.children) if child.phase is not ChildPhase.STOPPED]
    return f"stopping {', '.join(left)}" if left else "stopping"
