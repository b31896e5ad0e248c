"""The labels of this host: its own from the settings, and those for its name, system, processor and runtimes."""

import platform
import shutil
from collections.abc import Mapping

from activities.runtimes import programs
from activities.runtimes.table import RUNTIMES, SHELL, program_of
from activities.settings.model import Settings
from workflows.policy.placement import NAMED, RUNTIME


def labels(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return this host's labels; a runtime counts if its program is installed."""
    own = {*settings.worker.labels, f"{NAMED}{settings.host}", f"os:{platform.system().lower()}"}
    return tuple(sorted({*own, f"arch:{platform.machine()}", *_runtimes(settings, environ)}))


def _runtimes(settings: Settings, environ: Mapping[str, str]) -> set[str]:
    labels = {f"{RUNTIME}{SHELL}"}
    for name in RUNTIMES.keys() - {SHELL}:
        section = settings.runtime(name)
        program = program_of(name, section.adapter)
        if program and programs.find(program, section.command, environ):
            labels |= {f"{RUNTIME}{name}", f"{RUNTIME}{program.name}"}
        elif not program and section.command and shutil.which(section.command[0], path=environ.get("PATH")):
            labels |= {f"{RUNTIME}{name}"}
    return labels
