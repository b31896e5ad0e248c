"""Which adapter drives which runtime on this host: the table's programs as the settings have them."""

from collections.abc import Callable, Mapping

from activities.agents.adapter import Adapter
from activities.agents.claude import Claude
from activities.agents.codex import Codex
from activities.agents.installed_program import InstalledProgram
from activities.agents.kimi import Kimi
from activities.agents.shell import Shell
from activities.runtimes.table import CLAUDE, CODEX, KIMI, RUNTIMES, program_of
from activities.settings.model import Settings

ADAPTERS: Mapping[str, Callable[[InstalledProgram], Adapter]] = {
    CODEX.name: Codex,
    CLAUDE.name: Claude,
    KIMI.name: Kimi,
}
"""By the program's name. What has none of its own speaks the shell's protocol."""


def adapters_of(settings: Settings, environ: Mapping[str, str]) -> dict[str, Adapter]:
    """An adapter for every runtime: one whose program is missing says so when it is asked to run."""
    adapters: dict[str, Adapter] = {}
    environ = dict(environ)  # which a process apart is handed
    for name in RUNTIMES:
        section = settings.runtime(name)
        program = program_of(name, section.adapter)
        if program is None:
            adapters[name] = Shell(section.env, environ, section.command)
        else:
            installed = InstalledProgram(name, program, section.command, section.arguments, section.env, environ)
            adapters[name] = ADAPTERS[program.name](installed)
    return adapters
