"""Checks of runtimes: whether the program is found, new enough and logged in, else the command to type. No model is
called.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from activities.agents.acp import check_command, name_in
from activities.agents.environment import allowed_variables
from activities.redaction.redact import redact_text
from activities.runtimes import programs
from activities.runtimes.known_runtimes import KNOWN, PROGRAMS, RUNTIMES, SHELL, program_of
from activities.runtimes.programs import Program
from activities.settings.model import RuntimeSection
from bridge.operations.service import Service
from workflows.model.errors import NotFoundError, with_nearest
from workflows.text.durations import clock

if TYPE_CHECKING:
    from activities.host.build_trial import Trial

SECONDS, ACP_SECONDS = 20.0, 50.0
SAID = 200


@dataclass(frozen=True)
class RuntimeStatus:
    """The state of one runtime on this host."""

    name: str
    program: str
    works: bool
    says: str
    path: str | None = None
    version: str | None = None
    logged_in: bool | None = None
    """None when only a call of the model could tell."""
    fix: str = ""
    checks: "Trial | None" = None
    """The outcome of a build under the sandbox policy of check jobs; None if none was tried."""


def check_runtimes(service: Service, name: str | None = None, *, build: bool = False) -> list[RuntimeStatus]:
    """Check every runtime, or the named one; their versions are read in parallel. Of the programs that are known to
    speak ACP, those that are neither here nor in the settings are left out.

    With `build`, also run a build under each working runtime as a check job would, one after the other.
    """
    name = service.settings.runtime_by_name(name) if name else None
    every, sections = service.settings.every_runtime, service.settings.runtimes
    if name is not None and name not in every:
        missing = NotFoundError(f"no runtime {name}; {KNOWN}", "service runtime list")
        raise with_nearest(missing, name, (*every, *PROGRAMS))
    wanted = [name] if name else [*RUNTIMES, *service.settings.acp_runtimes]
    with ThreadPoolExecutor(len(wanted)) as pool:
        runtimes = list(pool.map(lambda known: look(known, sections.get(known, RuntimeSection())), wanted))
    return [_with_trial(service, each) for each in runtimes] if build else runtimes


def _with_trial(service: Service, runtime: RuntimeStatus) -> RuntimeStatus:
    from activities.host.build_trial import build_trial

    return replace(runtime, checks=build_trial(service.settings, os.environ, runtime.name)) if runtime.path else runtime


def any_works(runtimes: list[RuntimeStatus]) -> bool:
    """Return whether any runtime works. `shell` counts only if it was the only one checked: its agents bring their own
    command.
    """
    return any(runtime.works for runtime in runtimes if runtime.name != SHELL or len(runtimes) == 1)


def lacks(service: Service, name: str) -> str:
    """Return a sentence on what a runtime lacks, with the command to type. Only files and variables are checked; no
    program is run.
    """
    section = service.settings.runtimes.get(name, RuntimeSection())
    program = program_of(name, section.adapter)
    if program is None:
        return ""
    if programs.find(program, section.command) is None:
        return f"{section.command[0] if section.command else program.name} is not installed: {program.install}"
    if programs.is_logged_in(program, section.env, started_as=(*section.command, *section.arguments)) is False:
        return f"{program.name} is not logged in: {program.way_in}"
    return ""


def look(name: str, section: RuntimeSection, environ: Mapping[str, str] = os.environ) -> RuntimeStatus:
    """Return the state of a runtime: its program, and whether it works."""
    program = program_of(name, section.adapter)
    if name == SHELL:
        return RuntimeStatus(name, "the command of each agent", works=True, says="needs nothing")
    if program is None:
        script = shutil.which(section.command[0], path=environ.get("PATH"))
        if script is None:
            fix = f"set [runtimes.{name}].command to a program that is there"
            return RuntimeStatus(name, "script", works=False, says=f"there is no {section.command[0]}", fix=fix)
        return RuntimeStatus(name, "script", works=True, says="speaks the shell protocol", path=script)
    path = programs.find(program, section.command, environ)
    if path is None:
        where = f"there is no {section.command[0]}" if section.command else "not found on the PATH"
        return RuntimeStatus(name, program.name, works=False, says=where, fix=program.install)
    return _program(name, program, section, path, environ)


def _program(
    name: str, program: Program, section: RuntimeSection, path: str, environ: Mapping[str, str]
) -> RuntimeStatus:
    printed, trouble = _version(program, section, environ)
    version, by_acp = programs.version_in(printed), program.acp is not None
    if not (printed if by_acp else version):
        says = f"{path} does not {'speak ACP' if by_acp else 'tell its version'}: {trouble}"
        return RuntimeStatus(name, program.name, works=False, says=says, path=path, fix=program.install)
    started_as = (*section.command, *section.arguments)
    logged_in = programs.is_logged_in(program, section.env, environ, started_as=started_as)
    login = {True: "logged in", False: "not logged in", None: "whether it is logged in cannot be told from here"}
    says, fix = login[logged_in], program.way_in if logged_in is False else ""
    says = f"{printed} by ACP, {says}" if by_acp else says
    if (expires := programs.login_expires(program, environ)) is not None:
        says += f"{' until' if expires > time.time() else '; its login expired at'} {clock(expires)}"
        says += " (the service renews it)" if section.renew_login else f" (to renew it, use {program.name})"
        if expires <= time.time() and not section.renew_login:
            fix = program.way_in
    if version and version < program.minimum:
        says += f"; older than {'.'.join(map(str, program.minimum))}, with which it is known to work"
        fix = "; ".join(filter(None, (program.update(path), fix)))
    return RuntimeStatus(
        name=name,
        program=program.name,
        works=logged_in is not False,
        says=says,
        path=path,
        version=".".join(map(str, version)) if version else None,
        logged_in=logged_in,
        fix=fix,
    )


def _version(program: Program, section: RuntimeSection, environ: Mapping[str, str]) -> tuple[str, str]:
    """Run the program to get its version, in the environment that an agent gets; return the version's line and an
    error.
    """
    environment = {**allowed_variables((*section.env, *program.passes), environ), **program.sets}
    command, seconds = programs.version_command(program, section.command), SECONDS
    if program.acp is not None:
        command = check_command(ACP_SECONDS, (*(section.command or (program.start,)), *program.acp))
        seconds = ACP_SECONDS + SECONDS  # until then it has ended its agent itself
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer in {seconds:g} s"
    except OSError as error:
        return "", error.strerror or str(error)
    if program.acp is not None:
        return name_in(redact_text(done.stdout.decode(errors="replace")))
    lines = redact_text(done.stderr.decode(errors="replace")).strip().splitlines()
    last = lines[-1][:SAID] if lines else f"exit status {done.returncode}"
    return (done.stdout.decode(errors="replace"), last) if done.returncode == 0 else ("", last)
