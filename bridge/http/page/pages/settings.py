"""The settings in force, where each comes from, and which process still works with others (rulings K4, M4)."""

from collections.abc import Mapping
from itertools import groupby

from activities.settings.load import SettingsError
from bridge.http.page.page import Asked, Page
from bridge.operations import settings
from bridge.operations.service import Service
from bridge.operations.settings import Setting


def _look(service: Service, asked: Asked) -> Mapping[str, object]:
    """As the file is now: what this bridge has read may be older."""
    now = Service(service.home)
    try:
        found, fault = settings.in_force(now), ""
    except SettingsError as error:
        found, fault = (), error.message
    return {
        "title": "Settings",
        "file": service.home.config,
        "there": service.home.config.exists(),
        "sections": [(name, [*group]) for name, group in groupby(_own_first(found), key=lambda each: each.section)],
        "fault": fault,
        "processes": settings.processes(now),
    }


def _own_first(found: tuple[Setting, ...]) -> list[Setting]:
    """Sections in which somebody has set something stand above those that are as they came."""
    own = {each.section for each in found if each.origin != "default"}
    order = {each.section: number for number, each in enumerate(found)}
    return sorted(found, key=lambda each: (each.section not in own, order[each.section]))


PAGES = (Page("/settings", "settings.html", _look, fresh_seconds=5.0),)
