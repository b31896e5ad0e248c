"""A person's word about a host: it is lost, or is emptied (ruling Q5)."""

from typing import cast

import pytest
from sqlalchemy import update
from temporalio.client import Client

from activities.settings.home import Home
from activities.store import claim_rows, schema
from activities.store.attempt_rows import Offered
from activities.store.registry import host_rows, repo_rows
from activities.store.registry.repo_rows import Remote
from bridge.operations import temporal
from bridge.operations.registry import hosts
from bridge.operations.service import Service
from tests.bridge.seeds import job, task, write
from tests.moves import Server
from workflows.model.errors import NotFoundError, RefusedError
from workflows.model.states import JobState

HERE, THERE = "job-0c5e2v7q9a3k", "job-1c5e2v7q9a3k"


@pytest.fixture
def service(home: Home) -> Service:
    """Return a service with two hosts; web-1 has begun a job with a remote, and one on a plain checkout."""
    service = Service(home)
    repo_rows.put(service.store, "acme/shop", "", "", remote=Remote("https://git.example/shop", "main", "refs/service"))
    repo_rows.put(service.store, "acme/plain", "/srv/plain", "web-1")
    for name in ("web-1", "web-2"):
        host_rows.see(service.store, name, slots=4, started_at=1.0)
    for root, repo in ((HERE, "acme/shop"), (THERE, "acme/plain")):
        write(service, task(root, repo=repo), job(root, repo=repo, state=JobState.RUNNING))
        claim_rows.begin(service.store, Offered(root, 1), host="web-1", run_dir=f"/runs/{root}")
    return service


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()

    async def client_of(_: Service) -> Client:
        return cast("Client", server)

    monkeypatch.setattr(temporal, "client_of", client_of)
    return server


@pytest.mark.ruling("Q5.lost")
async def test_a_host_that_works_is_given_up_only_on_purpose(service: Service, server: Server) -> None:
    with pytest.raises(RefusedError, match=r"the host web-1 works: it was seen \d+ s ago") as caught:
        await hosts.give_up(service, "web-1", actor="ann")
    assert "service host lost web-1 --now" in caught.value.hint
    given_up = await hosts.give_up(service, "web-1", actor="ann", now=True)
    assert (given_up.moving, given_up.staying, given_up.next) == ((HERE,), (THERE,), "on web-1: service daemon start")
    [(workflow_id, order)] = server.moves
    assert (workflow_id, order.reason, order.last_seen) == (HERE, "ann declared its host web-1 lost", None)


@pytest.mark.ruling("Q5.lost")
async def test_a_host_that_is_away_is_given_up_at_a_word(service: Service, server: Server) -> None:
    with service.store.begin() as connection:
        connection.execute(update(schema.hosts).where(schema.hosts.c.name == "web-1").values(seen_at=5.0))
    await hosts.give_up(service, "web-1", actor="ann")
    [(_, order)] = server.moves
    assert (order.last_seen, order.reason.startswith("its host web-1 is lost: not seen since ")) == (5.0, True)
    assert hosts.get(service, "web-1").lost_at is not None


@pytest.mark.ruling("Q5.lost")
async def test_neither_an_unknown_host_nor_the_only_one_is_given_up(home: Home, server: Server) -> None:
    service = Service(home)
    host_rows.see(service.store, "web-1", slots=4, started_at=1.0)
    with pytest.raises(NotFoundError, match='no host web-3; known: web-1; did you mean "web-1"'):
        await hosts.give_up(service, "web-3", actor="ann")
    host_rows.stop(service.store, "web-1", started_at=1.0)
    with pytest.raises(RefusedError, match="web-1 is the only host"):
        await hosts.give_up(service, "web-1", actor="ann")


@pytest.mark.ruling("Q8.drain")
def test_a_drained_host_says_what_is_left_until_it_is_undone(service: Service) -> None:
    drained = hosts.drain(service, "web-1")
    assert (drained.draining, [each.job_id for each in drained.left]) == (True, [HERE, THERE])
    host_rows.see(service.store, "web-1", slots=4, started_at=2.0)
    assert hosts.drain_status(service, "web-1").draining, "a restart keeps it"
    assert not hosts.drain(service, "web-1", undo=True).draining
