"""`service mcp` on standard input and output: every message is answered, whatever is wrong (rulings S1, S8)."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.settings.home import Home
from bridge.machine import tokens_file
from bridge.operations.service import Service
from cli import mcp_stdio
from tests.bridge.conftest import Live, listening
from tests.waiting import PATIENCE

__all__ = ["listening"]
pytestmark = pytest.mark.ruling("S1")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codex", "version": "1"}},
}
WAITING = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "waiting", "arguments": {}}}


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    made = Service(home)
    yield made
    made.store.dispose()


def talk(home: Home, token: str, *messages: object, program: str = "") -> list[dict[str, Any]]:
    """Send messages one after another, each after the answer to the one before, and return the answers."""
    environment = {**os.environ, "SERVICE_HOME": str(home.root), "SERVICE_MCP_TOKEN": token}
    run = "import sys; sys.argv[0] = sys.argv[1]; from cli import mcp_stdio; mcp_stdio.run()"
    command, pipe = [sys.executable, "-P", "-c", run, program], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) as running:
        assert running.stdin
        assert running.stdout
        answers = []
        for message in messages:
            running.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
            running.stdin.flush()
            if not isinstance(message, dict) or "id" in message:
                answers.append(json.loads(running.stdout.readline()))
        running.stdin.close()
        assert running.wait(PATIENCE) == 0
    return answers


def announce(home: Home, url: str) -> None:
    """Write where the bridge listens, as the daemon does."""
    home.daemon_state.write_text(json.dumps({"bridge_url": url}))


def test_messages_are_passed_on_and_answered(service: Service, listening: Callable[[Service], Live]) -> None:
    announce(service.home, listening(service).url)
    token = tokens_file.add(service.home, "codex", "read")
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    first, called, garbage, again = talk(service.home, token, INITIALIZE, notification, WAITING, "garbage", WAITING)
    assert first["result"]["protocolVersion"] == "2025-06-18"
    assert called["result"]["structuredContent"] == {"waiting": "nothing"}
    assert garbage["error"]["code"] == -32700
    assert again == called


@pytest.mark.ruling("S8")
@pytest.mark.parametrize("params", [[], {"_meta": []}, {"clientInfo": "codex"}, None])
def test_a_message_of_a_wrong_shape_is_answered_too(
    service: Service, listening: Callable[[Service], Live], params: object
) -> None:
    announce(service.home, listening(service).url)
    token = tokens_file.add(service.home, "codex", "read")
    wrong = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params}
    answers = talk(service.home, token, wrong, WAITING)
    assert [answer["id"] for answer in answers][1:] == [2]
    assert "error" in answers[0]


@pytest.mark.ruling("S2", "S8")
def test_streams_that_were_cancelled_leave_room_for_calls(
    service: Service, listening: Callable[[Service], Live]
) -> None:
    announce(service.home, listening(service).url)
    token = tokens_file.add(service.home, "codex", "read")
    version = "2026-07-28"
    names = {"protocolVersion": version, "clientCapabilities": {}, "clientInfo": {"name": "codex", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in names.items()}
    asked = {"notifications": {"resourceSubscriptions": ["service://waiting"]}, "_meta": meta}
    messages: list[dict[str, Any]] = []
    for number in range(mcp_stdio.AT_ONCE + 1):
        messages.append({"jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": asked})
        cancelled = {"requestId": number}
        messages.append({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    *streams, called = talk(service.home, token, *messages, WAITING)
    assert {message["method"] for message in streams} == {"notifications/subscriptions/acknowledged"}
    assert called["result"]["structuredContent"] == {"waiting": "nothing"}


@pytest.mark.ruling("S8")
def test_a_wrong_token_is_answered_in_a_sentence(service: Service, listening: Callable[[Service], Live]) -> None:
    announce(service.home, listening(service).url)
    first, called = talk(service.home, "wrong", INITIALIZE, WAITING)
    assert first["error"]["message"] == "the token is wrong"
    assert called["result"]["isError"]
    assert called["result"]["content"][0]["text"] == "the token is wrong"


@pytest.mark.ruling("S8")
def test_a_daemon_that_cannot_be_started_is_said_in_words(home: Home, tmp_path: Path) -> None:
    failing = tmp_path / "service"
    failing.write_text("#!/bin/sh\necho 'error: the disk is full' >&2\nexit 1\n")
    failing.chmod(0o755)
    first, called = talk(home, "any", INITIALIZE, WAITING, program=str(failing))
    assert "The service is down; starting it failed: error: the disk is full" in first["error"]["message"]
    assert called["result"]["isError"]


def test_a_daemon_that_is_down_is_started(
    service: Service, listening: Callable[[Service], Live], tmp_path: Path
) -> None:
    state = tmp_path / "daemon.json"
    state.write_text(json.dumps({"bridge_url": listening(service).url}))
    starting = tmp_path / "service"
    starting.write_text(f'#!/bin/sh\n[ "$*" = "daemon start" ] && cp {state} {service.home.daemon_state}\n')
    starting.chmod(0o755)
    token = tokens_file.add(service.home, "codex", "read")
    [answer] = talk(service.home, token, WAITING, program=str(starting))
    assert answer["result"]["structuredContent"] == {"waiting": "nothing"}


def test_without_a_token_it_says_how_to_get_one(home: Home) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SERVICE_MCP_TOKEN"}
    command = [sys.executable, "-P", "-c", "from cli import mcp_stdio; mcp_stdio.run()"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert ended.returncode == 2
    assert "service mcp add CLIENT" in ended.stderr


@pytest.mark.ruling("N3", "S1")
def test_it_loads_nothing_of_the_service() -> None:
    program = "import sys; from cli import mcp_stdio; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"mcp", "pydantic", "typer", "bridge", "activities", "workflows", "httpx"} & set(loaded.split())
