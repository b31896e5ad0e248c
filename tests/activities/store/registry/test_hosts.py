"""Hosts, as their workers record them."""

import time
from typing import Any

import pytest
from sqlalchemy import Engine, update

from activities.store import job_rows, schema, tree_rows, waiting_rows
from activities.store.registry import host_rows
from tests.bridge.seeds import job
from tests.tree.simulator import tree_input
from workflows.model.rows import Records
from workflows.model.states import JobState
from workflows.policy.host_availability import HostSeen, lacks_worker

pytestmark = pytest.mark.ruling("engine:hosts")


def test_a_host_is_seen_stops_and_comes_back(store: Engine) -> None:
    before = time.time()
    host_rows.see(store, "web-1", slots=4, started_at=1.0)
    [host] = host_rows.every(store)
    assert (host.name, host.slots, host.started_at, host.stopped_at, host.running) == ("web-1", 4, 1.0, None, 0)
    assert before <= host.seen_at <= time.time()
    host_rows.stop(store, "web-1", started_at=1.0)
    assert host_rows.every(store)[0].stopped_at
    host_rows.see(store, "web-1", slots=4, started_at=2.0)
    host_rows.stop(store, "web-1", started_at=1.0)
    assert host_rows.every(store)[0].stopped_at is None, "another worker has taken its place"


def test_a_beat_keeps_what_others_wrote_and_says_who_and_where_the_host_is(store: Engine) -> None:
    mine: dict[str, Any] = {
        "machine": "m",
        "key": "k",
        "labels": ["gpu"],
        "address": "http://10.0.0.1:8791",
        "taken": 2,
    }
    host_rows.see(store, "web-1", slots=4, started_at=1.0)
    with store.begin() as connection:
        connection.execute(update(schema.hosts).values(draining_at=3.0, lost_at=4.0))
    assert host_rows.see(store, "web-1", slots=4, started_at=1.0, **mine)
    assert not host_rows.see(store, "web-1", slots=4, started_at=1.0, **mine | {"machine": "another"})
    [host] = host_rows.every(store)
    assert {name: getattr(host, name) for name in mine} == mine
    assert (host.draining_at, host.lost_at) == (3.0, None), "a host that gives a sign of life is not lost"


@pytest.mark.ruling("Q1")
def test_a_host_is_judged_by_the_clock_of_the_store_and_not_by_ones_own(
    store: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of a host is 90 s behind, then that of the one who looks."""
    tree_rows.begin(
        store, tree_input(root_job_id="job-aaaaaaaaaaaa"), "web-1", Records(jobs=(job("job-aaaaaaaaaaaa"),))
    )
    if store.dialect.name == "sqlite":
        pytest.skip("one machine has one clock")
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() - 90)
    host_rows.see(store, "web-1", slots=4, started_at=1.0)
    monkeypatch.setattr(time, "time", right)
    seen = host_rows.of_trees(store, {"job-aaaaaaaaaaaa"})["job-aaaaaaaaaaaa"]
    assert not lacks_worker(seen)
    assert [place.kind for place in waiting_rows.waits(store)] == []
    monkeypatch.setattr(time, "time", lambda: right() + 90)
    assert not lacks_worker(host_rows.every(store)[0].seen)


def test_why_a_host_starts_nothing_is_known_by_its_trees(store: Engine) -> None:
    tree_rows.begin(
        store, tree_input(root_job_id="job-aaaaaaaaaaaa"), "web-1", Records(jobs=(job("job-aaaaaaaaaaaa"),))
    )
    host_rows.see(store, "web-1", slots=4, started_at=1.0, held="no room")
    assert (
        host_rows.of_trees(store, {"job-aaaaaaaaaaaa"})["job-aaaaaaaaaaaa"].held
        == host_rows.every(store)[0].held
        == "no room"
    )
    host_rows.see(store, "web-1", slots=4, started_at=1.0)
    assert host_rows.every(store)[0].held == ""


def test_what_runs_is_counted_by_the_host_of_its_tree_and_a_host_never_seen_is_known_by_its_trees(
    store: Engine,
) -> None:
    host_rows.see(store, "web-1", slots=4, started_at=1.0)
    for root, host in (("job-aaaaaaaaaaaa", "web-1"), ("job-bbbbbbbbbbbb", "web-2")):
        start = tree_input(root_job_id=root)
        rows = (job(root), job(f"{root}.1"), job(f"{root}.2", state=JobState.QUEUED))
        tree_rows.begin(store, start, host, Records(jobs=rows))
    job_rows.write(store, Records(jobs=(job("job-aaaaaaaaaaaa.3", state=JobState.FAILED),)))
    assert [(host.name, host.running) for host in host_rows.every(store)] == [("web-1", 2)]
    hosts = host_rows.of_trees(store, {"job-aaaaaaaaaaaa", "job-bbbbbbbbbbbb", "job-cccccccccccc"})
    assert hosts["job-bbbbbbbbbbbb"] == HostSeen("web-2")
    assert hosts["job-aaaaaaaaaaaa"].seen_at
    assert set(hosts) == {"job-aaaaaaaaaaaa", "job-bbbbbbbbbbbb"}
    assert host_rows.of_trees(store, set()) == {}


@pytest.mark.ruling("Q5.lost")
def test_a_fleet_misses_a_host_that_vanished_though_no_job_waits_for_it(store: Engine) -> None:
    for name in ("web-1", "web-2"):
        host_rows.see(store, name, slots=4, started_at=1.0)
    with store.begin() as connection:
        connection.execute(update(schema.hosts).where(schema.hosts.c.name == "web-1").values(seen_at=5.0))
    assert [(each.kind, each.key) for each in waiting_rows.waits(store)] == [(waiting_rows.Kind.HOST, "web-1")]
    host_rows.stop(store, "web-1", started_at=1.0)
    assert waiting_rows.waits(store) == []
