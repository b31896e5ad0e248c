"""The page of the settings in force, their origins, and processes that still use older ones (rulings K4, M4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from activities.runtimes.known_runtimes import RUNTIMES
from activities.settings.load import SettingsError
from bridge.http.dashboard.frame.page import PageRequest, PageView
from bridge.operations import settings
from bridge.operations.service import Service
from bridge.operations.settings import Process, SettingInForce
from bridge.operations.settings_in_words import SettingSentence, sentence

AREAS = {
    "orchestrate": "Tasks and their limits",
    "runtimes": "The program",
    "temporal": "Temporal",
    "store": "Where records are kept",
    "artifacts": "Where long texts are kept",
    "worker": "This machine",
    "notify": "Notifications",
    "bridge": "The dashboard and the HTTP interface",
    "github": "GitHub",
    "git": "Git",
    "fleet": "Several hosts",
    "prices": "The price of",
}
PROGRAM_OF = {name: row.program.name for name, row in RUNTIMES.items() if row.program}


@dataclass(frozen=True)
class SettingLine:
    """A setting on its page."""

    setting: SettingInForce
    sentence: SettingSentence
    late: tuple[Process, ...]
    """The running processes that still use an older value: they need a restart."""

    @property
    def is_changed(self) -> bool:
        return self.setting.origin != "default"


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    """Read the settings file again: the bridge's own copy may be older."""
    now = Service(service.home)
    try:
        in_force, fault = settings.in_force(now), ""
    except SettingsError as error:
        in_force, fault = (), error.message
    processes = settings.processes(now)
    lines = [_line(row, processes) for row in in_force]
    return {
        "title": "Settings",
        "file": service.home.config,
        "there": service.home.config.exists(),
        "changed": [line for line in lines if line.is_changed],
        "sections": [(name, [*group]) for name, group in groupby(lines, key=lambda line: line.setting.section)],
        "about": _about,
        "fault": fault,
        "processes": processes,
    }


def _line(row: SettingInForce, processes: Sequence[Process]) -> SettingLine:
    name = f"{row.section}.{row.key}"
    late = tuple(process for process in processes if name in {change.key for change in process.changed})
    return SettingLine(row, sentence(row.section, row.key, row.value), late)


def _about(section: str) -> str:
    """Return what a section is about, in words; a program by its own name."""
    area, _, name = section.partition(".")
    return f"{AREAS[area]} {PROGRAM_OF.get(name, name) if area == 'runtimes' else name}".strip()


PAGES = (PageView("/settings", "settings.html", _look, fresh_seconds=5.0),)
