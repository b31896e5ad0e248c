"""Resilience against everybody who can reach the bridge's port: connections, framing, guesses (ruling N8)."""

import json
import socket
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest
from starlette.types import Scope

from bridge.http import connections
from bridge.http.wire import stream_limit
from bridge.machine import tokens_file
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live, bearer
from tests.waiting import wait_for

pytestmark = pytest.mark.ruling("N8")

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connected(live: Live) -> socket.socket:
    return socket.create_connection((live.address.host, live.address.port), timeout=20)


def said(line: socket.socket) -> bytes:
    """Read until the bridge closes the connection."""
    text = b""
    try:
        while part := line.recv(65536):
            text += part
    except ConnectionResetError:
        pass
    return text


def is_open(line: socket.socket) -> bool:
    line.setblocking(False)
    try:
        return line.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_300_connections_that_say_nothing_take_no_place_from_one_that_asks(
    service: Service, listening: Callable[[Service], Live]
) -> None:
    live = listening(service)
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(live)) for _ in range(300)]
        with httpx.Client(base_url=live.url, headers=bearer(service)) as client:
            assert [client.get("/v1/jobs").status_code for _ in range(3)] == [200] * 3
        left = [is_open(line) for line in silent]
    assert sum(left) <= connections.MOST
    assert left == sorted(left), "those that were silent longest made room"


def test_a_connection_at_work_makes_no_room(
    service: Service, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST", 3)
    live, authorization = listening(service), bearer(service)["Authorization"]
    head = "POST /v1/agents/scout/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    head += f"Authorization: {authorization}\r\nExpect: 100-continue\r\n\r\n"
    with ExitStack() as stack:
        at_work = [stack.enter_context(connected(live)) for _ in range(3)]
        for line in at_work:
            line.sendall(head.encode())
            assert line.recv(65536).startswith(b"HTTP/1.1 100"), "its head is read: before, it counts as silent"
        answer = said(stack.enter_context(connected(live)))
        assert answer.startswith(b"HTTP/1.1 503")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "busy"
        for line in at_work:
            line.sendall(b"not json!")
            assert line.recv(65536).startswith(b"HTTP/1.1 4"), "the call is answered"


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\n"])
def test_a_head_must_be_there_in_time(
    service: Service, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with connected(listening(service)) as line:
        line.sendall(begun)
        assert said(line) == b""


@pytest.mark.parametrize("path", ["/v1/agents/scout/ask", "/nowhere"])
def test_a_length_and_chunks_together_are_refused_and_nothing_after_them_is_read(
    service: Service, listening: Callable[[Service], Live], path: str
) -> None:
    live, authorization = listening(service), bearer(service)["Authorization"]
    both = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n{both}\r\n"
    with connected(live) as line:
        line.sendall(head.encode() + b"0\r\n\r\n" + HEALTH)
        answer = said(line)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"not both" in answer
    assert answer.count(b"HTTP/1.1 ") == 1, "what is smuggled behind it is not answered"


async def test_strangers_do_not_flush_the_audit(service: Service, call: httpx.AsyncClient) -> None:
    assert (await call.get("/v1/jobs")).status_code == 200
    for number in range(200):
        await call.get(f"/v1/{number}", headers={"Authorization": f"Bearer wrong-{number}"})
    assert (await call.get("/v1/jobs")).status_code == 200
    own = [json.loads(line) for line in service.home.audit.read_text().splitlines()]
    strangers = [json.loads(line) for line in service.home.strangers.read_text().splitlines()]
    assert [line["status"] for line in own] == [200, 200]
    assert 60 <= len(strangers) <= 80
    assert {line["status"] for line in strangers} <= {401, 429}


async def test_the_count_of_calls_without_a_line_is_told(service: Service, call: httpx.AsyncClient) -> None:
    from bridge.http.gates.audit import AuditLog, Strangers
    from bridge.http.gates.rate import Rate

    now = 0.0
    strangers = Strangers(AuditLog(service.home.strangers), Rate(2, clock=lambda: now))
    for number in range(5):
        strangers.write({"call": number})
    now = 60.0
    strangers.write({"call": 5})
    lines = [json.loads(line) for line in service.home.strangers.read_text().splitlines()]
    assert lines == [{"call": 0}, {"call": 1}, {"call": 5, "untold_before": 3}]


@pytest.mark.parametrize("token", ["right", "wrong"])
async def test_nothing_a_caller_made_up_is_copied_into_a_log(
    service: Service, call: httpx.AsyncClient, token: str
) -> None:
    headers = {} if token == "right" else {"Authorization": "Bearer wrong"}
    await call.get("/made-up/AKIA", headers=headers)
    await call.get("/ui/made-up", headers=headers)
    await call.request("MADEUP", "/v1/jobs", headers=headers)
    await call.get("/v1/jobs/made-up", headers=headers)
    files = [file for file in (service.home.audit, service.home.strangers) if file.exists()]
    text = "".join(file.read_text() for file in files)
    assert "made-up" not in text.lower()
    assert "madeup" not in text.lower()
    lines = sorted((json.loads(line) for line in text.splitlines()), key=lambda line: line["time"])
    assert [(line["method"], line["route"]) for line in lines] == [
        ("GET", "-"),
        ("GET", "-"),
        ("-", "/v1/jobs"),
        ("GET", "/v1/jobs/{job_id}"),
    ]


async def test_of_90000_faults_of_a_body_20_are_told(service: Service, call: httpx.AsyncClient) -> None:
    body = {"message": "m", "repo": "acme/shop"} | {f"{number:x}": 0 for number in range(90_000)}
    headers = {"Content-Type": "application/json"}
    content = json.dumps(body, separators=(",", ":"))
    answer = await call.post("/v1/agents/scout/ask", content=content, headers=headers)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error.count("is not a field of this request") == 20
    assert error.endswith("; and 89,980 more")


async def test_a_name_in_a_fault_is_cut(service: Service, call: httpx.AsyncClient) -> None:
    body = {"message": "m", "repo": "acme/shop", "k" * 100_000: 0}
    for answer in (
        await call.post("/v1/agents/scout/ask", json=body),
        await call.get("/v1/jobs", params={"k" * 30_000: "x"}),
        await call.get(f"/v1/jobs/{'k' * 30_000}"),
        await call.post("/v1/jobs/job-0123456789ab/resume", json={"verb": "v" * 100_000}),
        await call.get("/v1/jobs", params={"state": "s" * 30_000}),
        await call.get("/v1/jobs", params={"cursor": "s" * 30_000}),
    ):
        assert 400 <= answer.status_code < 500
        assert len(answer.content) < 4_000, answer.text[:300]


@pytest.mark.parametrize("held", ["events", "wait"])
def test_one_token_cannot_hold_every_connection(
    service: Service, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    """One stream too many is refused with a remedy; other tokens are served, and ended streams make room."""
    monkeypatch.setattr(stream_limit, "MOST", 3)
    counted, count = list[str](), stream_limit.HeldOpen._count

    def counting(all_held: stream_limit.HeldOpen, scope: Scope) -> str:
        counted.append(caller := count(all_held, scope))
        return caller

    monkeypatch.setattr(stream_limit.HeldOpen, "_count", counting)
    seeds.paused(service)
    live, other = listening(service), tokens_file.add(service.home, "other", "read")
    stream = {**bearer(service), "Accept": "text/event-stream"}
    path = f"/v1/jobs/{seeds.ROOT}" + ("/events" if held == "events" else "?wait=30s")
    with httpx.Client(base_url=live.url, timeout=20) as client, ExitStack() as stack:
        open_ones = [stack.enter_context(connected(live)) for _ in range(3)]
        for line in open_ones:
            line.sendall(request(path, stream))

        wait_for(lambda: len(counted) == 3, "all three are held")
        refusal = client.get(f"/v1/jobs/{seeds.ROOT}/events", headers=stream)
        assert (refusal.status_code, refusal.json()["code"]) == (429, "too_many_streams")
        assert "3 " in refusal.json()["error"]
        assert client.get("/v1/jobs", headers=bearer(service)).status_code == 200, "what does not stay open is served"
        with client.stream("GET", f"/v1/jobs/{seeds.ROOT}/events", headers=stream | bearer_of(other)) as answer:
            assert answer.status_code == 200
        open_ones[0].close()

        def is_served() -> bool:
            with client.stream("GET", f"/v1/jobs/{seeds.ROOT}/events", headers=stream) as answer:
                return answer.status_code == 200

        wait_for(is_served, "what has ended makes room")


def request(path: str, headers: dict[str, str]) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def bearer_of(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
