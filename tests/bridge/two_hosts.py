"""Two services with host names of their own, one store and one seal key."""

import shutil
from pathlib import Path

from sqlalchemy import select

from activities.git.hub import SERVICE
from activities.settings.home import Home
from activities.store import schema
from activities.store.registry import host_rows, repo_rows
from activities.store.registry.repo_rows import Remote
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge.conftest import Live

HERE, THERE = "web-1", "web-2"


def joined(home: Home, folder: Path, *, settings: str = "") -> tuple[Service, Service]:
    """Return the service of `home` under the name `HERE`, and another one, `THERE`, on its store."""
    made = []
    for name, host_home in ((HERE, home), (THERE, Home(folder / THERE).ensure())):
        store = f'[store]\nurl = "sqlite:///{home.store}"\n' if host_home is not home else ""
        host_home.config.write_text(f'[worker]\nhost = "{name}"\n{store}{settings}')
        if host_home is not home:
            shutil.copy(home.root / "seal.key", host_home.root / "seal.key")
        made.append(Service(host_home))
    return made[0], made[1]


def seen(service: Service, address: str) -> None:
    """Record the service's host with the address of its bridge, as its worker does."""
    host_rows.see(service.store, service.settings.host, slots=4, started_at=1.0, address=address)


def reachable(live: Live) -> Live:
    """Record where the host's bridge listens."""
    seen(live.service, live.url)
    return live


def at_hub(service: Service, repo: Path, folder: Path) -> Path:
    """Move a tree's repository from a checkout of this host to a remote, where all hosts find its work."""
    bare = folder / "hub.git"
    run_git(folder, "init", "-q", "--bare", "-b", "main", str(bare))
    run_git(repo, "push", "-q", str(bare), "main", "refs/heads/service/*:refs/service/*")
    with service.store.connect() as connection:
        rows = connection.execute(select(schema.attempts.c.job_id, schema.attempts.c.base_sha)).all()
    for job_id, base in rows:
        if base:
            run_git(repo, "push", "-q", str(bare), f"{base}:refs/service/line/{job_id}")
    repo_rows.remove(service.store, "acme/shop")
    repo_rows.put(service.store, "acme/shop", "", "", "acme/shop", Remote(str(bare), "main", SERVICE))
    shutil.rmtree(repo)
    return bare
