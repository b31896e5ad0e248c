"""The adapter of each runtime on this host, with the settings of its program."""

from collections.abc import Callable, Mapping

from activities.agents import acp, claude, codex, kimi, shell
from activities.agents.acp import Acp
from activities.agents.adapter import Adapter
from activities.agents.claude import Claude
from activities.agents.codex import Codex
from activities.agents.entries import Read
from activities.agents.installed_program import InstalledProgram
from activities.agents.kimi import Kimi
from activities.agents.shell import Shell
from activities.runtimes.known_runtimes import CLAUDE, CODEX, KIMI, program_of
from activities.settings.model import Settings

ADAPTERS: Mapping[str, Callable[[InstalledProgram], Adapter]] = {
    CODEX.name: Codex,
    CLAUDE.name: Claude,
    KIMI.name: Kimi,
}
"""Adapters by program name. Other programs speak ACP; a runtime without a program uses the shell's protocol."""

_READERS: Mapping[str, Read] = {CODEX.name: codex.entries, CLAUDE.name: claude.entries, KIMI.name: kimi.entries}


def reader_of(settings: Settings, runtime: str) -> Read:
    """Return the function that turns the output of a runtime's program into a transcript's entries."""
    program = program_of(runtime, settings.runtime(runtime).adapter)
    return _READERS.get(program.name, acp.entries) if program else shell.entries


def adapters_of(settings: Settings, environ: Mapping[str, str]) -> dict[str, Adapter]:
    """Return an adapter for every runtime. An adapter reports a missing program only when a job is to run."""
    adapters: dict[str, Adapter] = {}
    environ = dict(environ)  # a plain dict, which can be passed to another process
    for name in settings.every_runtime:
        section = settings.runtime(name)
        program = program_of(name, section.adapter)
        if program is None:
            adapters[name] = Shell(section.env, environ, section.command)
        else:
            installed = InstalledProgram(
                name,
                program,
                section.command,
                section.arguments,
                section.env,
                section.mcp_servers,
                environ,
                section.modes,
                section.renew_login,
                settings.structured(name),
            )
            adapters[name] = ADAPTERS.get(program.name, Acp)(installed)
    return adapters
