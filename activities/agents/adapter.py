"""What every runtime adapter does: say how its program is started, and read how that went."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from activities.agents.faults import Fault
from activities.boxes.box import BoxKind
from activities.runs.supervised_run import RunEnd
from workflows.model.errors import ServiceError
from workflows.model.jobs import JobRun
from workflows.model.spend import Usage


@dataclass(frozen=True)
class ProgramCall:
    """One run of an agent's program: what it is to do, and where."""

    run: JobRun
    prompt: bytes
    session: str | None
    """The session to go on in; None begins a fresh one."""
    run_dir: Path
    """This run's own folder; its name is unique on the host."""
    cwd: Path
    home: Path
    """The runtime's own folder below the service home."""
    box: BoxKind = BoxKind.NONE
    """The box it is started in."""


@dataclass(frozen=True)
class Launch:
    """How to start an agent's program."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: bytes | None = None
    """What its standard input holds; None is an empty one, never an open one."""
    read: tuple[Path, ...] = ()
    """Files of its own, beside its program, that it reads: in a box it sees no others."""
    write: tuple[Path, ...] = ()
    """What it must be able to change, beside its work folder: its sessions, its login. What is not there is made: a
    file if its name has an ending, else a folder."""
    scratch: tuple[Path, ...] = ()
    """Folders that it writes to, of which nothing but `read` and `write` is wanted: in a box they begin empty."""
    settings: tuple[Path, ...] = ()
    """Its user's settings, which are of `read`: an account of agents is let read them."""
    home_variable: str = ""
    """Moves its scratch folder."""
    reads_only: bool = False
    """Nothing but the box keeps it from writing its work folder, as its policy demands."""


@dataclass(frozen=True)
class ProgramReport:
    """What an agent's program said: the raw text a result is looked for in, and what it used."""

    text: bytes
    usage: Usage
    session: str | None = None
    model: str | None = None
    """The model it says it used; of several, the one that used most tokens. None when it says nothing."""
    cumulative: bool = False
    """The usage is the session's so far, not this run's."""
    fault: Fault | None = None
    """Why a program that ended has no result to be read; the exit code alone does not say."""
    refused: tuple[str, ...] = ()
    """The tool of each call that writes, or may write, and that its policy or its sandbox refused."""


class CannotLaunchError(ServiceError):
    """The program must not be started as things are; a person can change that."""

    code = "cannot_launch"


class Adapter(Protocol):
    """One runtime."""

    def require(self) -> None:
        """CannotLaunchError where somebody has to do something first, as far as files and variables tell."""
        ...

    def tries_in_vain(self, stdout: Path) -> bool:
        """Whether a program that runs says that it goes on trying what it is not let do."""
        ...

    def launch(self, call: ProgramCall) -> Launch:
        """The program, fresh or going on in a session."""
        ...

    def holding(self, call: ProgramCall, command: tuple[str, ...]) -> tuple[str, ...]:
        """The start of a command that is held as the program holds its agent's, without a model."""
        ...

    def read(self, call: ProgramCall, end: RunEnd) -> ProgramReport:
        """What a program that is no longer running printed."""
        ...
