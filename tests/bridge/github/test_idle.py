"""What idle repositories cost: free answers only, at most three a minute each (rulings L7, L8)."""

import time
from collections import Counter

import pytest

from activities.store import repos
from activities.store.github import account
from bridge.github.desk import Desk
from tests.bridge import seeds
from tests.bridge.github.conftest import Office

REPOS, MINUTES = 20, 4


class Clock:
    """Time that passes when the desk waits."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def twenty(office: Office) -> None:
    """Each with a tree that waits for a person."""
    hub, service = office.hub, office.service
    for at in range(REPOS):
        name, root = f"acme/idle-{at}", f"job-0123456789{at:02}"
        hub.repo(name)
        hub.user("helper", role="write", repo=name)
        number = hub.pull(repo=name)
        repos.put(service.store, name, "/srv/checkouts/idle", service.settings.host, name)
        of_it = {"repo": name}
        seeds.write(service, seeds.task(root, **of_it), seeds.event(1, root, kind="tree_started"))
        seeds.write(service, seeds.job(root, pull_request=number, **of_it))


@pytest.mark.ruling("L7", "L8")
async def test_idle_repositories_cost_no_quota(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    twenty(office)
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    desk = Desk(office.session)
    for _ in range(200):  # until everything is told, a second apart
        clock.now += (await desk._turn()).again or 0.0
        if len(office.hub.writes()) == REPOS and account.read(office.session.store).wrote_at < clock.now - 60:
            break
    first, began = len(office.hub.requests), clock.now
    while clock.now < began + 60 * MINUTES:
        turn = await desk._turn()
        assert turn.again is not None
        clock.now += max(turn.again, 0.01)
    asked = office.hub.requests[first:]
    assert all(each.free for each in asked), [each.line for each in asked if not each.free][:5]
    by_repo = Counter(each.path for each in asked)
    assert len(by_repo) == REPOS
    assert max(by_repo.values()) <= 3 * MINUTES + 1
    assert min(by_repo.values()) >= 3 * MINUTES - 1
