"""Which adapter drives which runtime on this host."""

from collections.abc import Mapping

from activities.agents.adapter import Adapter
from activities.agents.claude import Claude
from activities.agents.codex import Codex
from activities.agents.driver import Driver
from activities.agents.kimi import Kimi
from activities.agents.programs import CLAUDE, CODEX, Program, program_of
from activities.agents.shell import Shell
from activities.settings.model import RUNTIMES, RuntimeSection, Settings


def adapters_of(settings: Settings, environ: Mapping[str, str]) -> dict[str, Adapter]:
    """An adapter for every runtime: one whose program is missing says so when it is asked to run."""
    return {name: _adapter(name, settings.runtimes.get(name, RuntimeSection()), environ) for name in RUNTIMES}


def _adapter(runtime: str, section: RuntimeSection, environ: Mapping[str, str]) -> Adapter:
    program = program_of(runtime, section.adapter)
    if program is None:
        return Shell(section.env, environ, section.command)
    return _driving(program, Driver(runtime, program, section.command, section.arguments, section.env, environ))


def _driving(program: Program, driver: Driver) -> Adapter:
    if program is CODEX:
        return Codex(driver)
    return Claude(driver) if program is CLAUDE else Kimi(driver)
