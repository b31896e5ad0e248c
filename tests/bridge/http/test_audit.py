"""One line for every call (ruling J11)."""

import json
import stat

import httpx
import pytest

from activities.settings.home import Home
from bridge.http.gates.audit import KEPT, AuditLog
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.seeds import ROOT

pytestmark = pytest.mark.ruling("J11")


async def test_every_call_leaves_a_line_and_the_line_says_what_became_of_it(
    service: Service, call: httpx.AsyncClient
) -> None:
    seeds.write(service, seeds.task(), seeds.job())
    answers = [
        await call.get(f"/v1/jobs/{ROOT}"),
        await call.get("/v1/jobs", headers={"Authorization": "Bearer wrong-secret"}),
        await call.post("/v1/agents/nobody/ask", json={"message": "private words", "repo": "acme/shop"}),
        await call.get("/nowhere?token=hidden"),
        await call.get("/v1/jobs", headers={"Host": "evil.example"}),
        await call.get("/healthz"),
    ]
    text = service.home.audit.read_text() + service.home.strangers.read_text()
    entries = sorted((json.loads(line) for line in text.splitlines()), key=lambda line: float(line["time"]))
    assert [line["request_id"] for line in entries] == [answer.headers["X-Request-Id"] for answer in answers]
    assert [(line["method"], line["route"], line["status"], line["error"]) for line in entries] == [
        ("GET", "/v1/jobs/{job_id}", 200, None),
        ("GET", "/v1/jobs", 401, "unauthorized"),
        ("POST", "/v1/agents/{name}/ask", 404, "not_found"),
        ("GET", "-", 404, "not_found"),
        ("GET", "/v1/jobs", 403, "forbidden_host"),
        ("GET", "/healthz", 200, None),
    ]
    assert {line["address"] for line in entries} == {"10.0.0.9"}
    assert entries[2]["bytes_in"] == len(answers[2].request.content)
    assert all(line["duration_ms"] > 0 and line["time"] > 0 for line in entries)
    for never in ("private words", "wrong-secret", "hidden", service.home.bridge_token.read_text()):
        assert never not in text


def test_it_is_of_its_owner_alone(service: Service, call: httpx.AsyncClient) -> None:
    assert stat.S_IMODE(service.home.audit.stat().st_mode) == 0o600
    assert stat.S_IMODE(service.home.audit.parent.stat().st_mode) == 0o700


def test_a_file_that_grew_is_set_aside_and_the_oldest_goes(home: Home) -> None:
    log = AuditLog(home.audit, rotate_bytes=100)
    for number in range(60):
        log.write(f'{{"line": {number}, "{"x" * 40}": 0}}')
    files = sorted(home.audit.parent.iterdir())
    assert [file.name for file in files] == ["bridge.jsonl", *(f"bridge.jsonl.{n}" for n in range(1, KEPT + 1))]
    kept = [json.loads(line)["line"] for file in files for line in file.read_text().splitlines()]
    assert sorted(kept) == list(range(60 - len(kept), 60)), "whole lines, the newest, none twice"
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)


def test_two_bridges_of_one_home_lose_no_line(home: Home) -> None:
    logs = [AuditLog(home.audit, rotate_bytes=500) for _ in range(2)]
    for number in range(40):
        logs[number % 2].write(f'{{"line": {number}}}')
    text = "".join(file.read_text() for file in home.audit.parent.iterdir())
    assert sorted(json.loads(line)["line"] for line in text.splitlines()) == list(range(40))


def test_a_full_disk_does_not_take_the_bridge_down(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.audit.parent.mkdir(parents=True)
    home.audit.symlink_to("/dev/full")
    log = AuditLog(home.audit, rotate_bytes=100)
    for _ in range(3):
        log.write("x" * 90)
    assert [record.getMessage() for record in caplog.records] == [
        f"cannot write {home.audit}: [Errno 28] No space left on device"
    ] * 3
    home.audit.unlink()
