"""The cost of idle repositories: free answers only, at most three a minute each (rulings L7, L8)."""

import time
from collections import Counter

import pytest

from tests.bridge.github.conftest import Office
from tests.bridge.github.idle import REPOS, Clock, idle, twenty

MINUTES = 4


@pytest.mark.ruling("L7", "L8")
async def test_idle_repositories_cost_no_quota(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    twenty(office)
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    asked = (await idle(office, clock, MINUTES)).asked
    assert all(each.free for each in asked), [each.line for each in asked if not each.free][:5]
    by_repo = Counter(each.path for each in asked)
    assert len(by_repo) == REPOS
    assert max(by_repo.values()) <= 3 * MINUTES + 1
    assert min(by_repo.values()) >= 3 * MINUTES - 1
