"""Named tokens with scopes: a refusal names the needed scope, and records name the token (ruling N5)."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from activities.runs.ancestry import AgentProcess
from activities.settings.home import Home
from activities.store import event_rows
from bridge.http.app import create_app
from bridge.http.wire import authorization
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.webhook import PATH as WEBHOOK
from bridge.machine import token, tokens_file
from bridge.machine.tcp_callers import CannotTellError, SocketAddress
from bridge.machine.token_scopes import TokenScope
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.conftest import BASE, NO_TEMPORAL, PLENTY, caller
from workflows.model.errors import ServiceError

pytestmark = pytest.mark.ruling("N5")
FREE = {"/healthz", "/readyz", WEBHOOK}
STARTS = {"/v1/agents/{name}/ask", "/v1/pipelines/{name}/run"}
LOOKS = {"/v1/memory/recall"}


@pytest.fixture
def hooked(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Create a service with every route, GitHub's too."""
    monkeypatch.setenv("HOOK", "secret")
    monkeypatch.setenv("TOKEN", "token")
    github = '[github]\ntoken_env = "TOKEN"\nwebhook_secret_env = "HOOK"\n'
    home.config.write_text(PLENTY + NO_TEMPORAL + github)
    made = Service(home)
    yield made
    made.store.dispose()


def routes(service: Service) -> dict[tuple[str, str], APIRoute]:
    """Return all routes but the document's own."""
    by_path: dict[tuple[str, str], APIRoute] = {}
    for route in create_app(service).routes:
        if getattr(route, "path", "") != "/openapi.json":
            assert isinstance(route, APIRoute)
            assert isinstance(route, StrictRoute) or route.path == WEBHOOK, route
            by_path |= {(method, route.path): route for method in route.methods or ()}
    return by_path


def expected(method: str, path: str) -> TokenScope | None:
    if path in FREE:
        return None
    if method == "GET" or path in LOOKS:
        return TokenScope.READ
    return TokenScope.ASK if path in STARTS else TokenScope.ACT


def test_every_route_declares_its_scope_and_the_document_says_it(hooked: Service) -> None:
    by_path = routes(hooked)
    assert len(by_path) > len(FREE)
    document = create_app(hooked).openapi()
    for (method, path), route in by_path.items():
        wanted = expected(method, path)
        assert authorization.declared_scope(route.openapi_extra) is wanted, path
        operation = document["paths"][path][method.lower()]
        assert operation["security"] == ([{"bearer": [str(wanted)]}] if wanted else []), path
        assert ("forbidden_scope" in operation["responses"]["403"]["description"]) is (
            wanted in {TokenScope.ASK, TokenScope.ACT}
        )


def test_a_route_that_declares_none_cannot_be_served() -> None:
    with pytest.raises(ValueError, match="must declare its scope"):
        APIRouter(route_class=StrictRoute).add_api_route("/x", lambda: None)


def sent(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("scope", list(TokenScope))
async def test_a_token_does_what_its_scope_covers_and_nothing_else(service: Service, scope: TokenScope) -> None:
    token = tokens_file.add(service.home, "ci", scope)
    async with caller(service, **sent(token)) as client:
        for method, path in routes(service):
            needed = expected(method, path)
            answer = await client.request(method, path.format(name="x", job_id=seeds.ROOT, run_id="prun-0123456789ab"))
            if needed is not None and not scope.covers(needed):
                assert answer.status_code == 403, path
                assert answer.json()["code"] == "forbidden_scope"
                add = f"service bridge token add NAME --scope {needed}"
                assert answer.json()["error"] == (
                    f"this takes a token of scope {needed}, and the token ci has {scope}; try: {add}"
                )
            else:
                assert answer.status_code not in {401, 403}, (path, answer.text)


def audited(service: Service) -> list[dict[str, Any]]:
    return [json.loads(line) for line in service.home.audit.read_text().splitlines()]


async def test_a_removed_token_opens_nothing_at_once_and_others_go_on(service: Service) -> None:
    async with caller(service) as client:
        ci, web = (tokens_file.add(service.home, name, "read") for name in ("ci", "web"))
        assert [(await client.get("/v1/jobs", headers=sent(each))).status_code for each in (ci, web)] == [200, 200]
        tokens_file.remove(service.home, "ci")
        assert [(await client.get("/v1/jobs", headers=sent(each))).status_code for each in (ci, web)] == [401, 200]
        assert (await client.get("/v1/jobs")).status_code == 200
    own = "the operator's token"
    assert [each["by"] for each in audited(service)] == ["token ci", "token web", "token web", own]
    assert [json.loads(line)["by"] for line in service.home.strangers.open()] == [""]


@pytest.mark.parametrize("whose", ["ci", "the operator's"])
async def test_who_follows_with_a_token_is_cut_off_when_it_is_removed(live: Live, whose: str) -> None:
    seeds.write(live.service, seeds.task(), seeds.job(seeds.ROOT), seeds.event(1))
    home = live.service.home
    secret = tokens_file.add(home, "ci", "read") if whose == "ci" else token.ensure(home).read_text().strip()
    headers = sent(secret) | {"Accept": "text/event-stream"}
    async with live.client() as client:
        waiting = asyncio.create_task(client.get(f"/v1/jobs/{seeds.ROOT}?wait=60s", headers=sent(secret)))
        async with client.stream("GET", f"/v1/jobs/{seeds.ROOT}/events", headers=headers) as stream:
            lines = stream.aiter_lines()
            async for line in lines:
                if line.startswith("data:"):
                    break
            tokens_file.remove(home, "ci") if whose == "ci" else token.rotate(home)
            assert not [line async for line in lines if line.startswith("event: end")]
        late = await waiting
        assert (late.status_code, late.json()["code"]) == (401, "unauthorized")


async def test_a_slow_reader_gets_no_more_of_a_page_of_events_than_was_on_its_way(live: Live) -> None:
    events = [seeds.event(number, message="x" * 100_000) for number in range(1, 151)]
    seeds.write(live.service, seeds.task(), seeds.job(seeds.ROOT), *events)
    home = live.service.home
    headers = sent(tokens_file.add(home, "ci", "read")) | {"Accept": "text/event-stream"}
    async with live.client() as client, client.stream("GET", f"/v1/jobs/{seeds.ROOT}/events", headers=headers) as reply:
        assert reply.status_code == 200
        pieces = reply.aiter_raw(1024)
        await anext(pieces)
        tokens_file.remove(home, "ci")
        rest = sum([len(piece) async for piece in pieces])
    assert rest < 8_000_000, "what the buffers between them held, and not all 15 MB"


@pytest.mark.parametrize(("shown", "who"), [("ann", "ann, over HTTP"), (None, "bridge")])
async def test_an_order_is_recorded_under_the_token_s_name(
    service: Service, monkeypatch: pytest.MonkeyPatch, shown: str | None, who: str
) -> None:
    lines: list[str] = []

    async def kill(*_: object, actor: str, immediate: bool) -> None:
        lines.append(actor)
        raise ServiceError("enough")

    monkeypatch.setattr("bridge.operations.orders.trees.kill", kill)
    headers = sent(tokens_file.add(service.home, shown, "act")) if shown else {}
    async with caller(service) as client:
        await client.post(f"/v1/jobs/{seeds.ROOT}/kill", headers=headers)
    assert lines == [who]


def calling(service: Service, agent_at: Any) -> httpx.AsyncClient:
    app: FastAPI = create_app(service, agent_at)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE)


async def test_an_agent_s_order_is_refused_whatever_token_it_shows(service: Service) -> None:
    seeds.write(service, seeds.task(), seeds.job(seeds.ROOT))

    def an_agent(caller: SocketAddress, here: SocketAddress) -> AgentProcess:
        return AgentProcess(seeds.ROOT, service.home.root)

    async with calling(service, an_agent) as client:
        own = sent(service.home.bridge_token.read_text())
        for headers in (own, sent(tokens_file.add(service.home, "ann", "act"))):
            answer = await client.post(f"/v1/jobs/{seeds.ROOT}/kill", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "for_people")
            sentence = f"`POST /v1/jobs/{{job_id}}/kill` is for people, and an agent of {seeds.ROOT} has called it"
            assert answer.json()["error"].startswith(sentence)
            assert (await client.get(f"/v1/jobs/{seeds.ROOT}", headers=headers)).status_code == 200, "a look"
    events = event_rows.of_tree(service.store, seeds.ROOT)
    assert [each.kind for each in events] == ["agent_refused"]
    assert [each["error"] for each in audited(service)] == ["for_people", None] * 2
    assert [each["by"] for each in audited(service)][::2] == [
        f"an agent of {seeds.ROOT}, with {whose}" for whose in ("the operator's token", "token ann")
    ]


async def test_who_cannot_be_told_from_an_agent_is_asked_to_call_again(service: Service) -> None:
    def nobody_knows(caller: SocketAddress, here: SocketAddress) -> None:
        raise CannotTellError

    async with calling(service, nobody_knows) as client:
        headers = sent(service.home.bridge_token.read_text())
        answer = await client.post(f"/v1/jobs/{seeds.ROOT}/kill", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "unknown_caller")
        assert (await client.get("/v1/jobs", headers=headers)).status_code == 200
