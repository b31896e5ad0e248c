"""What every runtime adapter does: say how its program is started, and read what it printed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from workflows.tree.jobs import JobRun, Usage


@dataclass(frozen=True)
class Launch:
    """How to start an agent's program; the prompt goes to its standard input."""

    argv: tuple[str, ...]
    env: dict[str, str]


@dataclass(frozen=True)
class Report:
    """What an agent's program said: the raw text a result is looked for in, and what it used."""

    text: bytes
    usage: Usage
    session: str | None = None


class Adapter(Protocol):
    """One runtime."""

    def launch(self, run: JobRun, session: str | None) -> Launch:
        """The program, fresh or going on in a session."""
        ...

    def read(self, stdout: Path) -> Report:
        """What a finished program printed."""
        ...
