"""Every surface shows that a job's host has no worker (rulings B3, J6)."""

import json
import time
from typing import Any

import pytest
from sqlalchemy import update

from activities.settings.home import Home
from activities.settings.model import Fleet as FleetSection
from activities.settings.model import Store
from activities.store import schema, tree_rows
from activities.store.job_rows import JobFilter
from activities.store.registry import host_rows, repo_rows
from activities.store.registry.repo_rows import Remote
from activities.store.tree_list import TreeFilter
from bridge.http.wire import projections
from bridge.operations.jobs import hosts, jobs, tree_list
from bridge.operations.orders import attention
from bridge.operations.registry import hosts as registry
from bridge.operations.service import Service
from cli.main import main
from tests.bridge.seeds import ROOT, job, task, write
from tests.tree.simulator import tree_input
from workflows.model.errors import RefusedError
from workflows.model.rows import JobRecord, Records
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("engine:hosts", "B3")

WAY_BACK = "on web-1: service daemon start"


@pytest.fixture
def service(home: Home) -> Service:
    """Return a tree on web-1 with a job that waits for a slot, one that runs, and one that has ended."""
    there = Service(home)
    rows = (
        job(state=JobState.QUEUED, reason="waits for a free slot", queued_at=time.time() - 90),
        job(f"{ROOT}.1"),
        job(f"{ROOT}.2", state=JobState.FAILED, reason="exit code 1", ended_at=5.0),
    )
    tree_rows.begin(there.store, tree_input(root_job_id=ROOT), "web-1", Records(task=task(), jobs=rows))
    return there


def saw(service: Service, seconds_ago: float) -> None:
    host_rows.see(service.store, "web-1", slots=4, started_at=1.0)
    with service.store.begin() as connection:
        connection.execute(update(schema.hosts).values(seen_at=time.time() - seconds_ago))


def told(service: Service) -> list[JobRecord]:
    return sorted(jobs.find(service, JobFilter()), key=lambda job: job.job_id)


def over_http(service: Service) -> dict[str, Any]:
    return dict(json.loads(projections.job(service, ROOT).body))


def test_while_its_host_is_there_a_job_says_what_the_tree_says(service: Service) -> None:
    saw(service, 20)
    assert [each.reason for each in told(service)] == ["waits for a free slot", "", "exit code 1"]
    assert attention.find(service).hosts == ()


def test_a_host_not_seen_for_a_minute_is_the_reason_on_every_surface(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    saw(service, 70)
    waiting, running, ended = told(service)
    assert waiting.reason.startswith("its host web-1 has no worker: not seen since ")
    assert (waiting.next, running.reason, running.next) == (WAY_BACK, waiting.reason, WAY_BACK)
    assert ended.reason == "exit code 1"
    assert jobs.detail(service, ROOT).job.reason == waiting.reason
    assert [each.reason for each in jobs.tree(service, ROOT).jobs] == [waiting.reason, running.reason, "exit code 1"]
    assert (over_http(service)["reason"], over_http(service)["next"]) == (waiting.reason, WAY_BACK)
    for words in (["job", "show", ROOT], ["job", "tree", ROOT]):
        assert main(words) == 0
        shown = capsys.readouterr().out
        assert waiting.reason in shown
        assert WAY_BACK in shown
    assert main(["job", "list"]) == 0
    assert "its host web-1 has no worker" in capsys.readouterr().out


def test_attention_lists_a_host_that_jobs_wait_for_after_a_minute(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    saw(service, 70)
    [absent] = attention.find(service).hosts
    assert (absent.host, absent.waiting, absent.next) == ("web-1", (ROOT,), WAY_BACK), "the other was begun just now"
    assert attention.find(service).hosts[0].waiting == (ROOT,)
    assert main(["attention"]) == 0
    assert f"web-1  1 job waits for it: {ROOT}\n  {absent.says}\n  {WAY_BACK}\n" in capsys.readouterr().out


@pytest.mark.ruling("N3")
def test_a_host_without_room_is_the_reason_of_what_waits_on_every_surface(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    host_rows.see(service.store, "web-1", slots=4, started_at=1.0, held="0.2 GiB are free")
    waiting, running, _ = told(service)
    assert (waiting.reason, waiting.next) == ("its host web-1 starts nothing: 0.2 GiB are free", "on web-1: service gc")
    assert running.reason == ""
    assert over_http(service)["reason"] == waiting.reason
    [held] = attention.find(service).hosts
    assert (held.says, held.next, held.waiting) == (waiting.reason, waiting.next, (ROOT,))
    assert main(["job", "show", ROOT]) == 0
    assert waiting.reason in capsys.readouterr().out
    host_rows.see(service.store, "web-1", slots=4, started_at=1.0)
    assert attention.find(service).hosts == ()


def test_one_that_was_stopped_is_said_at_once_and_calls_for_attention_after_a_minute(service: Service) -> None:
    saw(service, 1)
    host_rows.stop(service.store, "web-1", started_at=1.0)
    assert told(service)[0].reason.startswith("its host web-1 has no worker: it was stopped at ")
    assert attention.find(service).hosts == ()


@pytest.mark.ruling("Q4")
def test_a_job_that_no_host_can_run_waits_for_no_single_one(service: Service) -> None:
    saw(service, 70)
    nowhere = "no host has the label gpu"
    ended = job(f"{ROOT}.1", state=JobState.FAILED, ended_at=5.0, revision=2)
    write(service, job(state=JobState.QUEUED, reason=nowhere, revision=2), ended)
    assert told(service)[0].reason == over_http(service)["reason"] == nowhere
    [row] = tree_list.find(service, TreeFilter())
    assert (row.root.reason, row.tree.waits_for.what) == (nowhere, nowhere)


def test_one_that_was_never_seen_is_said(service: Service) -> None:
    assert told(service)[0].reason == "its host web-1 has no worker: none was ever seen"


def test_status_lists_every_host(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    saw(service, 70)
    assert main(["daemon", "status", "--all"]) == 1
    last = capsys.readouterr().out.splitlines()[-1].split()
    assert (last[0], last[1:3], last[-2:]) == ("web-1", ["1m", "ago"], ["1", "4"])
    assert main(["daemon", "status", "--all", "--json"]) == 1
    [listed] = json.loads(capsys.readouterr().out)["hosts"]
    assert (listed["name"], listed["running"], listed["slots"], listed["has_worker"]) == ("web-1", 1, 4, False)


@pytest.mark.ruling("Q1")
def test_hosts_are_listed_with_their_state_slots_and_labels(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    beat: dict[str, Any] = {"slots": 4, "started_at": 1.0, "labels": ["gpu"], "taken": 3}
    for name, held in (("a", ""), ("b", "the disk is full"), ("c", ""), ("d", ""), ("e", ""), ("f", "")):
        host_rows.see(service.store, name, held=held, **beat)
    with service.store.begin() as connection:
        for name, values in (
            ("c", {"draining_at": 2.0}),
            ("d", {"lost_at": 2.0}),
            ("e", {"seen_at": time.time() - 70}),
        ):
            connection.execute(update(schema.hosts).where(schema.hosts.c.name == name).values(**values))
    host_rows.stop(service.store, "f", started_at=1.0)
    assert main(["host", "list"]) == 0
    heading, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert heading == ["HOST", "STATE", "SEEN", "SLOTS", "VERSION", "LABELS"]
    states = ["works", "held", "draining", "lost", "unseen", "stopped"]
    assert [(row[0], row[1], row[4], row[-1]) for row in rows] == [
        (name, state, "3/4", "gpu") for name, state in zip("abcdef", states, strict=True)
    ]
    assert main(["host", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(each["state"], each["has_worker"]) for each in listed][:2] == [("works", True), ("held", True)]
    assert main(["host", "show", "b"]) == 0
    assert "held: the disk is full" in capsys.readouterr().out
    assert main(["host", "show", "g"]) == 4
    assert "no host g; known: a, b, c, d, e, f" in capsys.readouterr().err


@pytest.mark.ruling("Q1")
def test_a_host_that_something_depends_on_is_not_forgotten(service: Service) -> None:
    host_rows.see(service.store, "web-1", slots=4, started_at=1.0)
    repo_rows.put(service.store, "acme/shop", "/srv/shop", "web-1")

    def refused() -> str:
        with pytest.raises(RefusedError) as no:
            registry.remove(service, "web-1")
        return no.value.message

    assert refused() == "the host web-1 works"
    saw(service, 70)
    assert registry.get(service, "web-1").open_jobs == (ROOT, f"{ROOT}.1")
    assert refused() == f"web-1 has 2 open jobs: {ROOT}, {ROOT}.1"
    ended = [job(each, state=JobState.FAILED, ended_at=5.0, revision=2) for each in (ROOT, f"{ROOT}.1")]
    write(service, *ended)
    assert refused() == "only web-1 has a checkout of acme/shop"
    repo_rows.put(service.store, "acme/shop", "/srv/shop", "web-2")
    registry.remove(service, "web-1")
    assert hosts.every(service) == []


def test_looking_at_hosts_makes_no_store(bare_home: Home) -> None:
    assert hosts.every(Service(bare_home)) == []
    assert not bare_home.store.exists()


@pytest.mark.ruling("Q5.lost")
def test_in_a_fleet_a_job_says_when_it_goes_on_elsewhere_or_why_it_cannot(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    saw(service, 70)
    fleet = service.settings.model_copy(update={"store": Store(url="postgresql://nowhere")})
    monkeypatch.setattr(type(service), "settings", fleet)
    repo_rows.put(service.store, "acme/shop", "/srv/shop", "web-1")
    waiting = told(service)[0]
    assert waiting.reason.endswith("; only it has acme/shop, which has no remote")
    assert over_http(service)["reason"] == waiting.reason
    assert hosts.absence_of(service, "acme/shop").endswith(f"; only it has acme/shop, so the job waits ({WAY_BACK})")
    repo_rows.put(service.store, "acme/shop", "", "", remote=Remote("https://git.example/shop", "main", "refs/service"))
    waiting = told(service)[0]
    assert "; the job goes on elsewhere after " in waiting.reason
    assert hosts.absence_of(service, "acme/shop") == ""
    assert waiting.next == f"{WAY_BACK}; or sooner: service host lost web-1"
    assert (over_http(service)["reason"], over_http(service)["next"]) == (waiting.reason, waiting.next)
    never = fleet.model_copy(update={"fleet": FleetSection.model_validate({"move_after": "0"})})
    monkeypatch.setattr(type(service), "settings", never)
    assert told(service)[0].next == f"{WAY_BACK}; or elsewhere: service host lost web-1"
