"""Hosts, as their workers record them."""

import time

import pytest
from sqlalchemy import Engine

from activities.store import jobs, trees
from activities.store.registry import hosts
from tests.bridge.seeds import job
from tests.tree.simulator import tree_input
from workflows.model.rows import Records
from workflows.model.states import JobState
from workflows.policy.host_availability import HostSeen

pytestmark = pytest.mark.ruling("engine:hosts")


def test_a_host_is_seen_stops_and_comes_back(store: Engine) -> None:
    before = time.time()
    hosts.see(store, "web-1", slots=4, started_at=1.0)
    [host] = hosts.every(store)
    assert (host.name, host.slots, host.started_at, host.stopped_at, host.running) == ("web-1", 4, 1.0, None, 0)
    assert before <= host.seen_at <= time.time()
    hosts.stop(store, "web-1", started_at=1.0)
    assert hosts.every(store)[0].stopped_at
    hosts.see(store, "web-1", slots=4, started_at=2.0)
    hosts.stop(store, "web-1", started_at=1.0)
    assert hosts.every(store)[0].stopped_at is None, "another worker has taken its place"


def test_why_a_host_starts_nothing_is_known_by_its_trees(store: Engine) -> None:
    trees.begin(store, tree_input(root_job_id="job-aaaaaaaaaaaa"), "web-1", Records(jobs=(job("job-aaaaaaaaaaaa"),)))
    hosts.see(store, "web-1", slots=4, started_at=1.0, held="no room")
    assert (
        hosts.of_trees(store, {"job-aaaaaaaaaaaa"})["job-aaaaaaaaaaaa"].held == hosts.every(store)[0].held == "no room"
    )
    hosts.see(store, "web-1", slots=4, started_at=1.0)
    assert hosts.every(store)[0].held == ""


def test_what_runs_is_counted_by_the_host_of_its_tree_and_a_host_never_seen_is_known_by_its_trees(
    store: Engine,
) -> None:
    hosts.see(store, "web-1", slots=4, started_at=1.0)
    for root, host in (("job-aaaaaaaaaaaa", "web-1"), ("job-bbbbbbbbbbbb", "web-2")):
        start = tree_input(root_job_id=root)
        rows = (job(root), job(f"{root}.1"), job(f"{root}.2", state=JobState.QUEUED))
        trees.begin(store, start, host, Records(jobs=rows))
    jobs.write(store, Records(jobs=(job("job-aaaaaaaaaaaa.3", state=JobState.FAILED),)))
    assert [(host.name, host.running) for host in hosts.every(store)] == [("web-1", 2)]
    found = hosts.of_trees(store, {"job-aaaaaaaaaaaa", "job-bbbbbbbbbbbb", "job-cccccccccccc"})
    assert found["job-bbbbbbbbbbbb"] == HostSeen("web-2")
    assert found["job-aaaaaaaaaaaa"].seen_at
    assert set(found) == {"job-aaaaaaaaaaaa", "job-bbbbbbbbbbbb"}
    assert hosts.of_trees(store, set()) == {}
