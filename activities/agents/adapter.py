"""The interface of runtime adapters: they describe how to start their program, and read its output."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from activities.agents.faults import Fault
from activities.runs.supervised_run import RunEnd
from workflows.model.errors import ServiceError
from workflows.model.jobs import JobRun
from workflows.model.spend import Usage


@dataclass(frozen=True)
class ProgramCall:
    """One run of an agent's program: its job, prompt and folders."""

    run: JobRun
    prompt: bytes
    session: str | None
    """Session to resume; None begins a new one."""
    run_dir: Path
    """Folder of this run, with a name unique on the host."""
    cwd: Path
    home: Path
    """The program's own folder (login, settings, sessions) for this session, below the service home."""
    runs: bool = False
    """True if this run's program has been started before, by an earlier call: its folder must not be changed."""


@dataclass(frozen=True)
class Launch:
    """The command, environment and files of an agent's program."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: bytes | None = None
    """Content of the program's standard input; None gives an empty input, never an open one."""
    read: tuple[Path, ...] = ()
    """Further files that the program reads, besides its own. The box shows no others."""
    write: tuple[Path, ...] = ()
    """Writable paths besides the work folder, such as sessions and login.

    Missing ones are created: a file if the name has an ending, else a folder.
    """
    scratch: tuple[Path, ...] = ()
    """Folders that the program writes to. In a box they begin empty, except for the paths in `read` and `write`."""
    settings: tuple[Path, ...] = ()
    """The private paths among `read`. The account of agents gets the right to read them."""


@dataclass(frozen=True)
class ProgramReport:
    """The output of an agent's program: the raw text to find a result in, and its usage."""

    text: bytes
    usage: Usage
    session: str | None = None
    model: str | None = None
    """Model the program reported; of several, the one with the most tokens. None if it reported none."""
    cumulative: bool = False
    """True if the usage is that of the whole session so far, not only of this run."""
    estimated: bool = False
    """True if the usage is an estimate, because the program reports none or isn't known to count right."""
    fault: Fault | None = None
    """Why the ended program has no result. Its exit code alone does not show that."""
    refused: tuple[str, ...] = ()
    """Names of tools whose writing, or possibly writing, calls were refused by the job's policy or the sandbox."""


class CannotLaunchError(ServiceError):
    """The program can't be started until a person acts, such as logging in."""

    code = "cannot_launch"


class Adapter(Protocol):
    """The adapter of one runtime."""

    def require(self) -> None:
        """Raise CannotLaunchError if files and variables show that a person has to act first."""
        ...

    def tries_in_vain(self, stdout: Path) -> bool:
        """Return whether the running program's output shows that it keeps retrying something that is refused, such as
        its login.
        """
        ...

    def launch(self, call: ProgramCall) -> Launch:
        """Make the program's folder. Return how to start the program, in a new session or a resumed one."""
        ...

    def renew_login(self) -> None:
        """If the operator's login is about to expire, have the operator's own program renew it, and wait for the
        end.
        """
        ...

    def follow_login(self, call: ProgramCall) -> None:
        """Copy the operator's login to the running program after it was renewed in the background."""
        ...

    def only_sessions(self, call: ProgramCall) -> Path | None:
        """Move everything but sessions out of an ended program's folder. Return the folder that now holds it."""
        ...

    def holding(self, call: ProgramCall, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command line that runs `command` in the sandbox of the agent's own commands, without starting an
        agent.
        """
        ...

    def read(self, call: ProgramCall, end: RunEnd) -> ProgramReport:
        """Read the output of a program that has ended."""
        ...
