"""Temporal's web UI beside the dashboard: who reaches it, and what of a request and its answer is passed on."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest
import pytest_asyncio

from activities.runs.ancestry import AgentProcess
from bridge.http.app import create_app
from bridge.http.wire.authorization import AgentAt, no_agent
from bridge.machine import token, web_ui
from bridge.operations.service import Service
from tests.bridge.http.dashboard.surfer import BASE, Surfer

pytestmark = pytest.mark.ruling("N1")

PAGE = '<script>{base: ""}</script><link href="/_app/start.js">'
OWN = {"origin": BASE}


class _Program(BaseHTTPRequestHandler):
    """Stands for the program's web UI: it says what it was asked, to anybody."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)
    """Happens while it waits for news."""

    def do_GET(self) -> None:
        self.meanwhile()
        page = self.path == "/?"
        asked = {"path": self.path, "method": self.command, "headers": {k.lower(): v for k, v in self.headers.items()}}
        content = (PAGE if page else json.dumps(asked)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if page else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Set-Cookie", "_csrf=its-own; Path=/")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def program() -> Iterator[str]:
    with ThreadingHTTPServer(web_ui.hidden_listener(), _Program) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield "{}:{}".format(*server.server_address[:2])
        server.shutdown()


def surfer(service: Service, program: str, agent_at: AgentAt = no_agent) -> Surfer:
    transport = httpx.ASGITransport(create_app(service, agent_at, program), client=("127.0.0.1", 999))
    return Surfer(service, transport=transport)


@pytest_asyncio.fixture
async def ann(service: Service, program: str) -> AsyncIterator[Surfer]:
    async with surfer(service, program) as someone:
        await someone.enter(to="/ui/temporal")
        yield someone


async def test_its_page_is_placed_below_the_dashboard_under_a_policy_of_its_scripts(ann: Surfer) -> None:
    shown = await ann.open("/ui/temporal")
    assert shown.html == PAGE.replace('base: ""', 'base: "/ui/temporal"').replace("/_app/", "/ui/temporal/_app/")
    policy = shown.headers["content-security-policy"]
    assert "script-src 'self' 'sha256-" in policy
    assert "default-src 'none'" in policy
    assert "access-control-allow-origin" not in shown.headers
    assert shown.headers["cross-origin-resource-policy"] == "same-origin"


async def test_it_gets_no_header_or_cookie_of_the_service(ann: Surfer) -> None:
    ann.client.cookies.set("_csrf", "its-own")
    shown = await ann.open("/ui/temporal/api/v1/a%2Fb?query=%60x%60", authorization="Bearer x", accept="text/css")
    asked = json.loads(shown.html)
    assert asked["path"] == "/api/v1/a%2Fb?query=%60x%60"
    assert asked["headers"]["accept"] == "text/css"
    assert asked["headers"]["cookie"] == "_csrf=its-own"
    assert not {"authorization", "origin"} & set(asked["headers"])


async def test_without_a_session_or_from_another_page_nothing_is_passed_on(service: Service, program: str) -> None:
    async with surfer(service, program) as stranger:
        refused = await stranger.open("/ui/temporal/namespaces/service/workflows/job-1")
        assert refused.status == 401
        assert "service dashboard /ui/temporal/namespaces/service/workflows/job-1" in refused.words
        assert (await stranger.client.post("/ui/temporal/api", headers=OWN)).status_code == 401
        await stranger.enter()
        assert (await stranger.client.post("/ui/temporal/api", headers=OWN)).status_code == 200
        assert (await stranger.client.post("/ui/temporal/api")).status_code == 403, "no page has sent it"
        for foreign in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
            assert (await stranger.client.post("/ui/temporal/api", headers=OWN | foreign)).status_code == 403
            assert (await stranger.client.get("/ui/temporal/api", headers=foreign)).status_code == 403


async def test_what_it_waited_for_reaches_nobody_whose_session_has_ended(
    ann: Surfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Program, "meanwhile", lambda _: token.rotate(ann.service.home))
    shown = await ann.open("/ui/temporal/api/v1/history?wait=true")
    assert (shown.status, '"headers"' in shown.html) == (401, False)


@pytest.mark.ruling("N5")
async def test_an_agent_with_a_session_orders_nothing_by_it(service: Service, program: str) -> None:
    async with surfer(service, program, lambda *_: AgentProcess()) as agent:
        await agent.enter()
        refused = await agent.client.post("/ui/temporal/api/signal/resume", headers=OWN)
        assert refused.status_code == 403
        assert "is for people" in refused.text


async def test_a_web_ui_that_does_not_answer_or_is_not_there_is_said(service: Service) -> None:
    for program, status, words in (
        (str(web_ui.hidden_listener()), 503, "Temporal's web UI does not answer"),
        ("", 404, "no embedded Temporal server belongs to this bridge"),
    ):
        async with surfer(service, program) as ann:
            await ann.enter()
            shown = await ann.open("/ui/temporal/")
            assert shown.status == status
            assert words in shown.words
