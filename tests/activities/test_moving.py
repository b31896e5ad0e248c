"""Hosts that are away: people are told once, and what can move is ordered to (ruling Q5)."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from sqlalchemy import Engine, update
from temporalio.client import Client

from activities.host.context import Context
from activities.moving import HostWatch
from activities.notify import message
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import attempt_rows, claim_rows, job_rows, outbox, schema
from activities.store.attempt_rows import Offered
from activities.store.database import open_store
from activities.store.leader import Chore, Leader
from activities.store.registry import host_rows, repo_rows
from activities.store.registry.repo_rows import Remote
from tests.moves import Server
from tests.rows import ROOT, job, task
from workflows.model.jobs import JobOutcome
from workflows.model.rows import Records
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("Q5.lost")
LEG = f"{ROOT}.1"


@pytest.fixture
def store(home: Home) -> Engine:
    """Return a store in which the host a has begun a root job and its leg."""
    engine = open_store(home)
    remote = Remote("https://git.example/shop", "main", "refs/service")
    repo_rows.put(engine, "acme/shop", "", "", remote=remote)
    job_rows.write(engine, Records(task=task(), jobs=(running(ROOT), running(LEG, delegation_id="a"))))
    for job_id in (ROOT, LEG):
        claim_rows.begin(engine, Offered(job_id, 1), host="a", run_dir=f"/runs/{job_id}")
    for name in ("a", "b"):
        host_rows.see(engine, name, slots=4, started_at=1.0)
    return engine


def running(job_id: str, *, queued: bool = False, **fields: Any) -> Any:
    return job(job_id, root_job_id=ROOT, state=JobState.QUEUED if queued else JobState.RUNNING, **fields)


Watch = Callable[..., HostWatch]


@pytest.fixture
def watch(store: Engine, home: Home) -> Watch:
    def made(server: Server, move_after: str = "10m") -> HostWatch:
        settings = Settings.model_validate({"fleet": {"move_after": move_after}})
        leader = Leader(store, Chore.MOVE_JOBS_OF_LOST_HOSTS)
        return HostWatch(cast("Client", server), Context(home, settings, store), leader, reached_since=-60.0)

    return made


def away(store: Engine, seconds: float, host: str = "a") -> None:
    """Let the host have been seen for the last time so many seconds ago."""
    with store.begin() as connection:
        table = schema.hosts
        ago = host_rows.every(store)[0].now - seconds
        connection.execute(update(table).where(table.c.name == host).values(seen_at=ago, stopped_at=None))


async def test_people_hear_once_that_a_host_is_away_until_it_comes_back(store: Engine, watch: Watch) -> None:
    server, watching = Server(), watch(Server())
    watching.client = cast("Client", server)
    away(store, 50)
    await watching.check()
    assert server.started == []
    away(store, 70)
    for host in (watching, watch(server), watch(server)):  # other hosts look later
        await host.check()
    [first] = server.started
    notification = outbox.get(store, first.removeprefix("notify-"))
    assert notification is not None
    text = message.complete(store, notification).text
    assert text.startswith("the host a has no worker: not seen since ")
    assert text.endswith("\nservice host lost a")
    host_rows.see(store, "a", slots=4, started_at=2.0)
    await watching.check()
    away(store, 65)
    await watching.check()
    assert len(server.started) == 2
    assert server.moves == []


async def test_a_host_that_was_stopped_with_nothing_to_do_is_no_news(store: Engine, watch: Watch) -> None:
    server = Server()
    away(store, 70, "b")
    host_rows.stop(store, "b", started_at=1.0)
    await watch(server).check()
    assert server.started == []


async def test_after_a_while_what_it_had_begun_is_ordered_to_move_until_that_is_done(
    store: Engine, watch: Watch
) -> None:
    server = Server()
    away(store, 590)
    await watch(server).check()
    assert (server.moves, host_rows.every(store)[0].lost_at) == ([], None)
    away(store, 610)
    await watch(server).check()
    assert [(workflow_id, order.job_id) for workflow_id, order in server.moves] == [(ROOT, ROOT), (LEG, LEG)]
    order, host = server.moves[0][1], host_rows.every(store)[0]
    assert (order.attempt, order.host, order.begun, order.last_seen) == (1, "a", True, host.seen_at)
    assert order.reason.startswith("its host a is lost: not seen since ")
    assert host.lost_at is not None
    job_rows.write(store, Records(jobs=(running(LEG, delegation_id="a", attempt=2, revision=9),)))
    await watch(server).check()
    assert [workflow_id for workflow_id, _ in server.moves[2:]] == [ROOT]
    host_rows.see(store, "a", slots=4, started_at=2.0)
    await watch(server).check()
    assert (len(server.moves), host_rows.every(store)[0].lost_at) == (3, None)


async def test_a_workflow_that_takes_no_more_signals_holds_back_no_other(store: Engine, watch: Watch) -> None:
    server = Server(full=(ROOT,))
    away(store, 610)
    await watch(server).check()
    assert [workflow_id for workflow_id, _ in server.moves] == [LEG]


@pytest.mark.parametrize("move_after", ["0", "1h"])
async def test_a_persons_word_counts_at_once(store: Engine, watch: Watch, move_after: str) -> None:
    server = Server()
    away(store, 610)
    await watch(server, move_after).check()
    assert server.moves == []
    assert host_rows.lose(store, host_rows.every(store)[0].seen)
    await watch(server, move_after).check()
    assert len(server.moves) == 2


async def test_on_a_plain_checkout_only_what_has_ended_is_fetched_from_there(store: Engine, watch: Watch) -> None:
    server = Server()
    repo_rows.remove(store, "acme/shop")
    repo_rows.put(store, "acme/shop", "/srv/shop", "a")
    away(store, 610)
    await watch(server).check()
    assert server.moves == []
    row = attempt_rows.get(store, LEG, 1)
    assert row is not None
    attempt_rows.close(store, row, JobOutcome(job_id=LEG, state=JobState.SUCCEEDED, begun_at=1.0), {}, {})
    await watch(server).check()
    assert [workflow_id for workflow_id, _ in server.moves] == [LEG]


def placed(store: Engine, job_id: str, host: str = "a", *require: str) -> None:
    row = {"job_id": job_id, "attempt": 1, "host": host, "repo": "acme/shop", "at": 1.0, "require": list(require)}
    with store.begin() as connection:
        connection.execute(schema.placements.insert(), row)


@pytest.mark.ruling("Q8.drain")
async def test_what_waits_at_a_drained_host_is_offered_elsewhere_and_what_it_has_begun_is_not(
    store: Engine, watch: Watch
) -> None:
    server, waiting = Server(), f"{ROOT}.2"
    job_rows.write(store, Records(jobs=(running(waiting, delegation_id="b", revision=1, queued=True),)))
    for job_id in (LEG, waiting):
        placed(store, job_id)
    host_rows.drain(store, "a")
    await watch(server).check()
    [(workflow_id, order)] = server.moves
    assert (workflow_id, order.begun, order.last_seen) == (waiting, False, None)
    assert order.reason == "its host a is drained"
    host_rows.drain(store, "a", undo=True)
    away(store, 610)
    await watch(server).check()
    assert [order.job_id for _, order in server.moves[1:]] == [ROOT, LEG, waiting]


@pytest.mark.ruling("Q4.freed")
async def test_what_waits_at_a_full_host_goes_to_one_that_has_free_slots_twice_and_the_labels(
    store: Engine, watch: Watch
) -> None:
    server = Server()
    watching = watch(server)
    waiting = [f"{ROOT}.{number}" for number in (2, 3, 4)]
    rows = [running(each, delegation_id=each, revision=1, queued=True) for each in waiting]
    job_rows.write(store, Records(jobs=tuple(rows)))
    for job_id, labels in zip(waiting, ((), ("gpu",), ()), strict=True):
        placed(store, job_id, "a", *labels)
    host_rows.see(store, "a", slots=1, started_at=1.0, taken=4, labels=["gpu"])
    host_rows.see(store, "b", slots=1, started_at=2.0)
    await watching.check()
    assert server.moves == [], "b may have queues that it does not report yet"
    await watching.check()
    [(workflow_id, order)] = server.moves
    assert (workflow_id, order.host, order.begun) == (waiting[0], "a", False)
    assert order.reason == "its host a is full, and b has a free slot"
    host_rows.see(store, "b", slots=2, started_at=2.0, taken=1, labels=["gpu"])
    placed(store, "coming", "b")
    with store.begin() as connection:
        connection.execute(update(schema.placements).where(schema.placements.c.host == "b").values(at=2e12))
    await watching.check()
    assert len(server.moves) == 1, "b will have no free slot"
    host_rows.see(store, "b", slots=9, started_at=2.0, taken=1, labels=["gpu"])
    away(store, 70)
    await watching.check()
    await watching.check()
    assert len(server.moves) == 1, "a may come back"


async def test_after_an_outage_of_the_store_nobody_is_away_until_all_had_a_minute_to_say_so(
    store: Engine, watch: Watch
) -> None:
    server = Server()
    watching = watch(server)
    away(store, 700)
    watching.reached_at -= 46
    await watching.check()
    await watching.check()
    assert (server.moves, server.started, host_rows.every(store)[0].lost_at) == ([], [], None)
    watching.reached_since -= 60
    await watching.check()
    assert len(server.moves) == 2
