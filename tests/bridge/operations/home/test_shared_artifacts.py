"""`service gc` and `service backup` of hosts that share a PostgreSQL store (ruling Q2)."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from activities.settings.home import Home
from activities.store import schema
from bridge.operations.home import backup, gc
from bridge.operations.service import Service
from tests import keys
from tests.bridge import seeds
from tests.postgres import running
from workflows.model.errors import NotFoundError
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("Q2")

DAY = 86_400.0


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Service, Service]]:
    with running() as server:
        made = []
        for name in ("one", "two"):
            home = keys.give(Home(tmp_path / name).ensure())
            settings = (
                f'[store]\nurl = "{server.url}"\n[worker]\nhost = "{name}"\n[temporal]\naddress = "127.0.0.1:1"\n'
            )
            home.config.write_text(settings)
            made.append(Service(home))
        yield made[0], made[1]
        for service in made:
            service.store.dispose()


def put(service: Service, text: str, days: float) -> str:
    """Store a text as if that was some days ago."""
    digest = service.artifacts.put(text.encode())
    with service.store.begin() as connection:
        used = update(schema.artifacts).where(schema.artifacts.c.digest == digest)
        connection.execute(used.values(used_at=schema.artifacts.c.used_at - days * DAY))
    at = time.time() - days * DAY
    os.utime(service.home.artifacts / "sha256" / digest[:2] / digest[2:], (at, at))
    return digest


def test_any_host_removes_what_no_tree_of_any_host_needs_and_the_copies_of_its_own(
    hosts: tuple[Service, Service], tmp_path: Path
) -> None:
    one, two = hosts
    ages = {"open": TaskState.OPEN, "done": TaskState.DONE}
    for number, state in enumerate(ages.values()):
        root, ended = f"job-0123456789a{number}", time.time() - 35 * DAY if state is TaskState.DONE else None
        task = seeds.task(root, state=state, ended_at=ended, opened_at=time.time() - 40 * DAY)
        seeds.write(one, task, seeds.job(root, state=JobState.SUCCEEDED if ended else JobState.RUNNING, ended_at=ended))
    for service in hosts:
        service.artifacts.hand_over()
    needed, old = put(one, "needed", 39), put(one, "old", 45)
    reclaimed = gc.reclaim(two, "30d", yes=True)
    assert {room.what: room.count for room in reclaimed.rooms if room.count} == {"artifacts": 1}
    assert two.artifacts.get(needed) == b"needed"
    with pytest.raises(NotFoundError):
        two.artifacts.get(old)
    assert one.artifacts.get(old) == b"old", "its own copy"
    gc.reclaim(one, "30d", yes=True)
    with pytest.raises(NotFoundError):
        one.artifacts.get(old)
    assert one.artifacts.get(needed) == b"needed", "fetched again"
    made = backup.make(one, tmp_path / "copy")
    assert made.notes[0] == "the store is a PostgreSQL database: pg_dump"
    assert not (tmp_path / "copy" / "artifacts").exists(), "pg_dump has them"
