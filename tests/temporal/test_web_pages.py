"""Attacks by a page in a local browser on the embedded server: it may start a workflow, which runs nothing."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from bridge.daemon.server import NAMESPACE, server_answers, server_command, server_environment
from bridge.machine import web_ui
from bridge.machine.ports import choose_port
from bridge.machine.web_ui import Listener
from tests.temporal.host import Host, script
from tests.temporal.server import SEALED, runs
from tests.temporal.strangers import closed_as
from workflows.temporal import search
from workflows.temporal.runner import WORKFLOWS

pytestmark = pytest.mark.ruling("N1")

PLACE = f"/api/v1/namespaces/{NAMESPACE}/workflows"
FORM = {"Content-Type": "text/plain", "Origin": "http://somewhere.example"}
FOREIGN = {"Content-Type": "application/json", "Origin": "http://evil.example", "Host": "evil.example"}
"""A host name of the page's own that resolves to us: for the browser, page and server are one site."""


def start_of(queue: str) -> str:
    given = {"metadata": {"encoding": b64encode(b"json/plain").decode()}, "data": b64encode(b'{"input": {}}').decode()}
    asked = {"workflowType": {"name": "DelegationTree"}, "taskQueue": {"name": queue}, "input": {"payloads": [given]}}
    return json.dumps(asked)


def sent(at: int | Listener, method: str, path: str, headers: dict[str, str], body: str = "") -> tuple[int, str]:
    """Return the answer, and the CSRF token that came with it."""
    connection = HTTPConnection(*(at if isinstance(at, Listener) else ("127.0.0.1", at)), timeout=20)
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        answer.read()
        cookies = answer.headers.get_all("Set-Cookie") or []
        tokens = [each.split(";")[0].partition("=")[2] for each in cookies if each.startswith("_csrf=")]
        return answer.status, tokens[0] if tokens else ""
    finally:
        connection.close()


@pytest_asyncio.fixture
async def ports() -> AsyncIterator[tuple[int, int, Listener]]:
    """Start the server as the daemon does, and yield where the engine, its HTTP API and its web UI listen."""
    front, api, ui = choose_port(0, "Temporal").port, choose_port(0, "the API").port, web_ui.hidden_listener()
    command = [*server_command(None, front, ui, search_attributes=tuple(search.NAMES.items())), "--http-port", str(api)]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, env=server_environment(), stdout=quiet, stderr=quiet)
    try:
        async with asyncio.timeout(120):
            await server_answers(ui)
        yield front, api, ui
    finally:
        process.kill()
        await process.wait()


async def test_no_page_has_anything_run(ports: tuple[int, int, Listener], tmp_path: Path) -> None:
    front, api, ui = ports
    client = await Client.connect(f"127.0.0.1:{front}", namespace=NAMESPACE, data_converter=SEALED)
    host, body = Host(script({})), start_of("service")
    for headers in (FORM, FORM | {"Host": "evil.example"}, FOREIGN):
        assert sent(api, "POST", f"{PLACE}/by-a-form", headers, body)[0] == 403
    assert sent(ui, "POST", f"{PLACE}/by-a-form", FORM, body)[0] == 400
    _, token = sent(ui, "GET", "/", {"Host": "evil.example"})
    as_its_own = FOREIGN | {"X-CSRF-Token": token, "Cookie": f"_csrf={token}"}
    assert sent(ui, "POST", f"{PLACE}/by-its-ui", as_its_own, body)[0] == 200, "the program takes it: that is why"
    trees = Worker(
        client, task_queue="service", workflows=WORKFLOWS, activities=host.activities, workflow_runner=runs(client)
    )
    async with trees:
        status, why = await closed_as(client, "by-its-ui")
    assert status == "FAILED"
    assert "it has no seal of this service" in why
    assert not host.written
