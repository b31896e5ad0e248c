"""The common part of agent programs: location, environment, and why a program ended without a result."""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

from activities.agents import program_folder
from activities.agents.adapter import CannotLaunchError, Launch, ProgramCall, ProgramReport
from activities.agents.environment import allowed_variables, environment
from activities.agents.faults import (
    Blocker,
    BlockerKind,
    Fault,
    ModelRefused,
    SessionLost,
    cut,
    failure_of,
    kind_of,
    reset_time,
)
from activities.agents.login_renewal import LoginRenewal
from activities.runs.output import read_bounded
from activities.runs.regular_files import NotRegularError, size_of
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from activities.runtimes import programs
from activities.runtimes.programs import Program, UsageScope
from workflows.contract.models import AutonomyPolicy
from workflows.model.spend import Usage

STDERR_LIMIT = 16_384
_REFUSED_CALL = ("unexpected argument", "unknown option", "unrecognized subcommand", "unknown command", "SyntaxError:")


@dataclass(frozen=True)
class InstalledProgram:
    """One runtime's program, as set up on this host."""

    runtime: str
    program: Program
    command: Sequence[str] = ()
    arguments: Sequence[str] = ()
    granted: Sequence[str] = ()
    mcp_servers: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    modes: Mapping[AutonomyPolicy, str] = field(default_factory=dict)
    """Session modes for policies, of a program that speaks ACP."""
    renews_login: bool = True
    """True if the operator's own program may be started to renew its login."""
    structured: bool = False
    """True if the program gets the schema of a result (ruling S6)."""

    @property
    def start(self) -> tuple[str, ...]:
        """Return the beginning of the command line: the settings' command, else the program's name."""
        return (*(self.command or (self.program.start,)), *(self.program.acp or ()))

    def environment(self, call: ProgramCall, **own: str) -> dict[str, str]:
        """Return the program's environment: the allow-list, the program's own variables, variables that the settings
        grant, and those of the adapter (`own`).
        """
        return environment(call.run, (*self.program.passes, *self.granted), self.environ) | own

    @property
    def users(self) -> Path:
        """Return the folder that the program has in the operator's account."""
        return self.program.home(self.environ)

    @property
    def login_renewal(self) -> LoginRenewal | None:
        """Return the renewal of the operator's login, unless the settings forbid it."""
        environ = allowed_variables((*self.program.passes, *self.granted), self.environ)
        return LoginRenewal(self.program, self.start, environ) if self.renews_login else None

    def servers(self, among: object, path: Path) -> dict[str, Any]:
        """Return the MCP servers of the operator's settings that jobs may use."""
        return program_folder.chosen_servers(among, self.mcp_servers, self.runtime, path)

    def launch(
        self,
        call: ProgramCall,
        argv: Sequence[str],
        env: Mapping[str, str],
        stdin: bytes | None,
        settings: Mapping[str, str],
    ) -> Launch:
        """Return the launch. Make the program's folder with these settings, unless the program has been started
        before.
        """
        if not call.runs:
            program_folder.make(call.home, self.program, self.users, settings)
        own = program_folder.besides_sessions(call.home, self.program)
        sessions = tuple(call.home / name for name in self.program.writes)
        moved = {self.program.home_variable: str(call.home)} if self.program.home_variable else {}
        return Launch(tuple(argv), {**env, **moved}, stdin, own, sessions, (call.home,), own)

    def model(self, model: str | None) -> tuple[str, ...]:
        """Return the option for the model; without a model, the program chooses."""
        return (self.program.model_option, model) if model else ()

    def report(
        self,
        text: bytes,
        usage: Usage | None,
        session: str | None,
        model: str | None,
        fault: Fault | None,
    ) -> ProgramReport:
        """Return the report; unknown usage counts as zero."""
        cumulative = usage is not None and self.program.counts is UsageScope.SESSION
        return ProgramReport(text, usage or Usage(), session, model, cumulative=cumulative, fault=fault)

    def stderr(self, end: RunEnd) -> str:
        """Return the end of the program's standard error."""
        return read_bounded(end.stderr, 0, STDERR_LIMIT).text.strip()

    def fault(self, message: str, status: int | None = None, until: float | None = None) -> Fault:
        """Classify the program's error message."""
        return self._classify(message, f"{self.program.name}: {cut(message)}", status, until)

    def crash(self, end: RunEnd) -> Fault:
        """Classify an exit for which the program gave no reason: by the last line of its standard error."""
        how = f"was ended by signal {end.signal}" if end.signal else f"crashed (exit {end.exit_code})"
        message = ": ".join((how, *self.stderr(end).splitlines()[-1:]))
        return self._classify(message, f"{self.program.name} {cut(message)}")

    def _classify(self, message: str, words: str, status: int | None = None, until: float | None = None) -> Fault:
        kind = kind_of(message, status)
        as_failure = failure_of(message, words)
        match kind:
            case None:
                return as_failure
            case BlockerKind.LOGIN if isinstance(as_failure, ModelRefused):
                return as_failure  # the login has no access to the model, and another one is no help
            case BlockerKind.LOGIN:
                return Blocker(kind, words, hint=self.program.way_in)
            case _:
                return Blocker(kind, words, until=until or reset_time(message, time.time()))

    def missing(self) -> Blocker | None:
        """Return a blocker if the program is not installed."""
        name = self.start[0]
        if shutil.which(name, path=self.environ.get("PATH")) is not None:
            return None
        says = f"the program of {self.runtime} is missing: there is no {name}"
        hint = f"{self.program.install}, or set [runtimes.{self.runtime}].command"
        return Blocker(BlockerKind.PROGRAM, says, hint=hint)

    def not_logged_in(self) -> Blocker | None:
        """Return a blocker if files and variables show that no person has logged in."""
        started_as = (*self.start, *self.arguments)
        if programs.is_logged_in(self.program, self.granted, self.environ, started_as=started_as) is not False:
            return None
        says = f"{self.program.name} is not logged in"
        return Blocker(BlockerKind.LOGIN, says, hint=self.program.way_in)

    def is_in_vain(self, stdout: Path) -> bool:
        """Return whether standard error's last line says that the program keeps retrying its login."""
        if self.program.in_vain is None:
            return False
        try:
            lines = read_bounded(stdout, 0, STDERR_LIMIT).tail.decode(errors="replace").splitlines()
        except NotRegularError:
            return False
        return bool(lines) and self.program.in_vain.match(lines[-1]) is not None

    def early_fault(self, call: ProgramCall, end: RunEnd) -> Fault | None:
        """Return the fault that shows without reading the stream: program missing or killed, call or login rejected,
        session lost.
        """
        if end.kind is EndKind.NOT_STARTED and (missing := self.missing()):
            return missing
        if end.kind is EndKind.CANCELLED and self.is_in_vain(end.stdout):
            says = f"{self.program.name} is refused: its login is no longer valid"
            return Blocker(BlockerKind.LOGIN, says, hint=self.program.way_in)
        if end.kind is EndKind.EXITED and end.signal == SIGKILL and not end.ran_out:
            return Blocker(BlockerKind.KILLED, f"{self.program.name} was killed by signal 9")
        if end.kind is not EndKind.EXITED or not end.exit_code:
            return None
        lost, lines = self.program.lost_session, self.stderr(end).splitlines()
        if call.session and (lost_line := next((line for line in lines if lost.search(line)), "")):
            return SessionLost(f"{self.program.name} cannot go on in its session: {cut(lost_line)}")
        refused = next((line for line in lines if any(words in line for words in _REFUSED_CALL)), "")
        if not refused or size_of(end.stdout):
            return None
        message = f"{self.start[0]} on {self.runtime} rejects the call: {cut(refused)}"
        hint = f"{self.program.install}; or correct [runtimes.{self.runtime}].arguments; then: service runtime check"
        return Blocker(BlockerKind.PROGRAM, message, hint=hint)


class Driver:
    """The common base of the adapters of agent programs."""

    def __init__(self, installed: InstalledProgram) -> None:
        self._installed = installed

    def require(self) -> None:
        """Check that the program is installed and logged in. Reads files and variables, and runs nothing."""
        if blocker := self._installed.missing() or self._installed.not_logged_in():
            raise CannotLaunchError(blocker.message, blocker.hint)

    def holding(self, call: ProgramCall, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command unchanged: this program asks before each command, but doesn't sandbox permitted ones."""
        del call
        return command

    def renew_login(self) -> None:
        """If the operator's login is about to expire, have the operator's own program renew it, and wait for the
        end.
        """
        if renewal := self._installed.login_renewal:
            renewal.run()

    def follow_login(self, call: ProgramCall) -> None:
        """Copy the operator's login to the running program after it was renewed in the background."""
        if renewal := self._installed.login_renewal:
            renewal.run_in_background()
        program_folder.follow(call.home, self._installed.program, self._installed.users)

    def only_sessions(self, call: ProgramCall) -> Path | None:
        """Move everything but sessions out of an ended program's folder. Return the folder that now holds it."""
        return program_folder.only_sessions(call.home, self._installed.program)

    def tries_in_vain(self, stdout: Path) -> bool:
        """Return whether the program's output shows that it keeps retrying its login."""
        return self._installed.is_in_vain(stdout)
