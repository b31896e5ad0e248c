"""What the three agent programs have in common: where they are, what they see, what an end without a result means."""

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from activities.agents.adapter import Order
from activities.agents.environment import environment
from activities.agents.faults import Blocker, BlockerKind, Failed, Fault, SessionLost, cut, kind_of
from activities.agents.programs import Program
from activities.agents.resets import reset_time
from activities.runs.output import read_bounded
from activities.runs.run import RunEnd
from activities.runs.supervisor import EndKind

STDERR_LIMIT = 16_384
_REFUSED_CALL = ("unexpected argument", "unknown option", "unrecognized subcommand", "unknown command", "SyntaxError:")


_LOST_SESSION = re.compile(
    r"no rollout found for thread id|already has an active writer"
    r"|No conversation found with session ID"
    r'|Session "[^"]*" (?:not found|was created under a different directory)'
)
"""How each of the three says that a session is not there, or not for this folder."""


def _lost(line: str) -> bool:
    return _LOST_SESSION.search(line) is not None


@dataclass(frozen=True)
class Driver:
    """One runtime's program, as the settings of this host have it."""

    runtime: str
    program: Program
    command: Sequence[str] = ()
    arguments: Sequence[str] = ()
    granted: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def start(self) -> tuple[str, ...]:
        """The command line's beginning: the settings' command, else the program's name."""
        return tuple(self.command) or (self.program.name,)

    def environment(self, order: Order, **own: str) -> dict[str, str]:
        """The allow-list, the program's own variables, what the settings grant, and what the adapter sets."""
        return environment(order.run, (*self.program.passes, *self.granted), self.environ) | own

    def stderr(self, end: RunEnd) -> str:
        """The end of what the program printed beside its stream."""
        return read_bounded(end.stderr, 0, STDERR_LIMIT).text.strip()

    def fault(self, message: str, status: int | None = None, until: float | None = None) -> Fault:
        """What the program's last words mean."""
        kind = kind_of(message, status)
        said = f"{self.program.name} on {self.runtime}: {cut(message)}"
        match kind:
            case None:
                return Failed(said)
            case BlockerKind.LOGIN:
                return Blocker(kind, said, hint=self.program.way_in)
            case _:
                return Blocker(kind, said, until=until or reset_time(message, time.time()))

    def early_fault(self, order: Order, end: RunEnd) -> Fault | None:
        """A program that is not there, or does not take the call: known whatever its stream would say."""
        name = self.start[0]
        if end.kind is EndKind.NOT_STARTED and shutil.which(name, path=self.environ.get("PATH")) is None:
            missing = f"the program of {self.runtime} is missing: there is no {name}"
            hint = f"{self.program.install}, or set [runtimes.{self.runtime}].command"
            return Blocker(BlockerKind.PROGRAM, missing, hint=hint)
        if end.kind is not EndKind.EXITED or not end.exit_code:
            return None
        if order.session and (said := next((line for line in self.stderr(end).splitlines() if _lost(line)), "")):
            return SessionLost(f"{self.program.name} on {self.runtime} cannot go on in its session: {cut(said)}")
        refused = next((line for line in self.stderr(end).splitlines() if any(w in line for w in _REFUSED_CALL)), "")
        if not refused or (end.stdout.exists() and end.stdout.stat().st_size):
            return None
        message = f"{name} on {self.runtime} does not take the call: {cut(refused)}"
        hint = f"{self.program.install}; or correct [runtimes.{self.runtime}].arguments; then: service runtime check"
        return Blocker(BlockerKind.PROGRAM, message, hint=hint)

    def ended_with(self, end: RunEnd) -> str:
        """The exit in words, with the last of what the program said beside its stream."""
        how = f"ended by signal {end.signal}" if end.signal else f"ended with exit code {end.exit_code}"
        last = self.stderr(end).splitlines()[-1:]
        return ": ".join((how, *last))
