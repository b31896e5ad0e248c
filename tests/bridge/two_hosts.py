"""Two services with host names of their own, one store and one seal key."""

import shutil
from pathlib import Path

from activities.settings.home import Home
from activities.store.registry import hosts
from bridge.operations.service import Service
from tests.bridge.conftest import Live

HERE, THERE = "web-1", "web-2"


def joined(home: Home, folder: Path, *, settings: str = "") -> tuple[Service, Service]:
    """Return the service of `home` under the name `HERE`, and another one, `THERE`, on its store."""
    made = []
    for name, each in ((HERE, home), (THERE, Home(folder / THERE).ensure())):
        store = f'[store]\nurl = "sqlite:///{home.store}"\n' if each is not home else ""
        each.config.write_text(f'[worker]\nhost = "{name}"\n{store}{settings}')
        if each is not home:
            shutil.copy(home.root / "seal.key", each.root / "seal.key")
        made.append(Service(each))
    return made[0], made[1]


def seen(service: Service, address: str) -> None:
    """Record the service's host with the address of its bridge, as its worker does."""
    hosts.see(service.store, service.settings.host, slots=4, started_at=1.0, address=address)


def reachable(live: Live) -> Live:
    """Record where the host's bridge listens."""
    seen(live.service, live.url)
    return live
