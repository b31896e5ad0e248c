"""`service mcp` while the bridge, the daemon and the worker are killed: it goes on, or says what to do."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.machine import daemon_state
from tests.e2e.conftest import Installed
from tests.e2e.script import Script, played
from tests.mcp_messages import message
from tests.waiting import wait_for

pytestmark = pytest.mark.long
Pipe = subprocess.Popen[str]
ASK = {"human_questions": [{"id": "store", "prompt": "Redis or memory?", "choices": ["redis", "memory"]}]}


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    yield from played(tmp_path)


@contextmanager
def stdio(service: Installed, scope: str) -> Iterator[Pipe]:
    """Run `service mcp` as a client starts it, and end it as one does."""
    printed = service("mcp", "add", "codex", "--scope", scope, "--print").stdout
    token = printed.partition("SERVICE_MCP_TOKEN=")[2].split()[0]
    environment = service.environment | {"SERVICE_MCP_TOKEN": token}
    command = [shutil.which("service", path=environment["PATH"]) or "service", "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as client:
        yield client
        assert client.stdin
        client.stdin.close()
        assert client.wait() == 0


@pytest.mark.ruling("S1", "S8")
def test_a_client_goes_on_when_bridge_and_daemon_are_killed(installed: Installed) -> None:
    service = installed
    service("daemon", "start")
    with stdio(service, "ask") as client:
        assert waiting(client)["structuredContent"]
        os.kill(service.pid("bridge"), signal.SIGKILL)
        cut = waiting(client)  # refused in words, or carried out by the next bridge
        assert "structuredContent" in cut or "Look before you repeat it." in cut["content"][0]["text"]
        state = daemon_state.status(service.seen.home).state
        assert state is not None
        os.kill(state.pid, signal.SIGKILL)
        wait_for(lambda: "structuredContent" in waiting(client))


@pytest.mark.ruling("B5", "S1", "S3", "S8")
def test_a_followed_task_goes_on_when_the_worker_is_killed_before_its_question_and_after_it(script: Script) -> None:
    service, starts = script.service, script.service.tmp / "starts"
    noted = {"run": [f"echo $SERVICE_JOB_ID attempt $SERVICE_ATTEMPT >> {starts}"]}
    script.answers(none=ASK | noted | {"wait": "go"}, answered=noted | {"wait": "go-on"})
    with stdio(service, "act") as client:

        def followed() -> dict[str, Any]:
            return send(client, "tasks/get", taskId=task)

        def killed_at_work(job_id: str, until: str) -> dict[str, Any]:
            wait_for(lambda: starts.exists() and job_id in starts.read_text().split())
            service.kill("worker")
            assert followed()["status"] == "working"
            (script.plans / until).touch()
            wait_for(lambda: followed()["status"] != "working")
            return followed()

        asked = {"agent": "lead", "message": "build it", "repository": "acme/shop", "request_id": "one"}
        task = send(client, "tools/call", name="start", arguments=asked | {"follow": True})["taskId"]
        job = task.partition("~")[0]
        [key] = killed_at_work(job, "go")["inputRequests"]
        form = {key: {"action": "accept", "content": {"store": "memory"}}}
        assert send(client, "tasks/update", taskId=task, inputResponses=form)["resultType"] == "complete"
        ended = killed_at_work(f"{job}.1", "go-on")
    assert ended["status"] == "completed"
    assert ended["result"]["structuredContent"]["state"] == "done"
    assert starts.read_text().splitlines() == [f"{job} attempt 1", f"{job}.1 attempt 1"]


def waiting(client: Pipe) -> dict[str, Any]:
    """Call the tool `waiting`, and return its result."""
    return send(client, "tools/call", name="waiting", arguments={})


def send(client: Pipe, method: str, **params: Any) -> dict[str, Any]:
    """Send a message, and return the result."""
    assert client.stdin
    assert client.stdout
    client.stdin.write(json.dumps(message(method, **params)[1]) + "\n")
    client.stdin.flush()
    result: dict[str, Any] = json.loads(client.stdout.readline())["result"]
    return result
