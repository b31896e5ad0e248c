"""Hosts of a fleet, for the tests of its tokens."""

from pathlib import Path

from activities.settings.home import Home
from bridge.operations.service import Service


def host(folder: Path, name: str) -> Service:
    """Return a host of a fleet, whose database stands for PostgreSQL."""
    home = Home(folder / name).ensure()
    home.config.write_text(f'[worker]\nhost = "{name}"\n[store]\nurl = "sqlite:///{folder}/fleet.db"\n')
    return Service(home)
