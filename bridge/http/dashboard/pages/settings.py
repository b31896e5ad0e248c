"""The page of the settings in force, their origins, and processes that still use older ones (rulings K4, M4)."""

from collections.abc import Mapping
from itertools import groupby

from activities.settings.load import SettingsError
from bridge.http.dashboard.frame.page import PageRequest, PageView
from bridge.operations import settings
from bridge.operations.service import Service
from bridge.operations.settings import SettingInForce


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    """Read the settings file again: the bridge's own copy may be older."""
    now = Service(service.home)
    try:
        in_force, fault = settings.in_force(now), ""
    except SettingsError as error:
        in_force, fault = (), error.message
    return {
        "title": "Settings",
        "file": service.home.config,
        "there": service.home.config.exists(),
        "sections": _sections(in_force),
        "fault": fault,
        "processes": settings.processes(now),
    }


def _sections(rows: tuple[SettingInForce, ...]) -> list[tuple[str, list[SettingInForce], bool]]:
    """Group the settings by section. Sections with a changed setting come first."""
    groups = [(name, [*group]) for name, group in groupby(rows, key=lambda row: row.section)]
    sections = [(name, group, any(row.origin != "default" for row in group)) for name, group in groups]
    return sorted(sections, key=lambda section: not section[2])


PAGES = (PageView("/settings", "settings.html", _look, fresh_seconds=5.0),)
