"""Idle repositories, and a clock that advances while the desk waits."""

import time
from dataclasses import dataclass

from activities.store.github import account
from activities.store.registry import repo_rows
from bridge.github.desk import Desk
from tests.bridge import seeds
from tests.bridge.github.conftest import Office
from tests.github.front import Seen

REPOS = 20


class Clock:
    """A clock that advances while the desk waits."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def twenty(office: Office) -> None:
    """Seed twenty repositories, each with a tree that waits for a person."""
    hub, service = office.hub, office.service
    for at in range(REPOS):
        name, root = f"acme/idle-{at}", f"job-0123456789{at:02}"
        hub.repo(name)
        hub.user("helper", role="write", repo=name)
        number = hub.pull(repo=name)
        repo_rows.put(service.store, name, "/srv/checkouts/idle", service.settings.host, name)
        of_it = {"repo": name}
        seeds.write(service, seeds.task(root, **of_it), seeds.event(1, root, kind="tree_started"))
        seeds.write(service, seeds.job(root, pull_request=number, **of_it))


@dataclass(frozen=True)
class Idle:
    """The requests and turns of some idle minutes."""

    asked: list[Seen]
    turns: int


async def idle(office: Office, clock: Clock, minutes: float) -> Idle:
    """Measure the requests of so many minutes, once everything is written. The clock replaces `time.time`."""
    desk, hub = Desk(office.session), office.hub
    for _ in range(400):  # a second apart
        clock.now += (await desk._turn()).again or 0.0
        if len(hub.writes()) >= REPOS and account.read(office.session.store).wrote_at < clock.now - 60:
            break
    first, began, turns = len(hub.requests), clock.now, 0
    while clock.now < began + 60 * minutes:
        turn, turns = await desk._turn(), turns + 1
        assert turn.again is not None
        clock.now += max(turn.again, 0.01)
    return Idle(hub.requests[first:], turns)
