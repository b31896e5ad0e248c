"""The conditions under which a host has no worker."""

import pytest

from workflows.policy.host_availability import UNSEEN_SECONDS, HostSeen, lacks_worker, unseen, way_back

pytestmark = pytest.mark.ruling("engine:hosts")

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("seen_at", "stopped_at", "lacks", "long"),
    [
        (None, None, True, True),
        (NOW, None, False, False),
        (NOW - UNSEEN_SECONDS, None, False, False),
        (NOW - UNSEEN_SECONDS - 0.1, None, True, True),
        (NOW - 5, NOW - 1, True, False),
        (NOW - 500, NOW - 499, True, True),
    ],
)
def test_a_host_lacks_its_worker_at_once_when_stopped_and_after_a_minute_of_silence(
    seen_at: float | None, stopped_at: float | None, lacks: bool, long: bool
) -> None:
    host = HostSeen("web-1", seen_at, stopped_at, now=NOW)
    assert (lacks_worker(host), unseen(host)) == (lacks, long)


def test_the_way_back_names_the_host() -> None:
    assert way_back("web-1") == "on web-1: service daemon start"
