"""`service mcp` while the bridge and the daemon are killed: it goes on, or says what to do."""

import json
import os
import shutil
import signal
import subprocess
from typing import Any

import pytest

from bridge.machine import daemon_state
from tests.e2e.conftest import Installed
from tests.waiting import wait_for

pytestmark = pytest.mark.long


@pytest.mark.ruling("S1", "S8")
def test_a_client_goes_on_when_bridge_and_daemon_are_killed(installed: Installed) -> None:
    service = installed
    service("daemon", "start")
    printed = service("mcp", "add", "codex", "--print").stdout
    token = printed.partition("SERVICE_MCP_TOKEN=")[2].split()[0]
    pipe, environment = subprocess.PIPE, service.environment | {"SERVICE_MCP_TOKEN": token}
    command = [shutil.which("service", path=environment["PATH"]) or "service", "mcp"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) as client:
        assert waiting(client)["structuredContent"]
        os.kill(service.pid("bridge"), signal.SIGKILL)
        cut = waiting(client)  # refused in words, or carried out by the next bridge
        assert "structuredContent" in cut or "Look before you repeat it." in cut["content"][0]["text"]
        state = daemon_state.status(service.seen.home).state
        assert state is not None
        os.kill(state.pid, signal.SIGKILL)
        wait_for(lambda: "structuredContent" in waiting(client))
        assert client.stdin
        client.stdin.close()
        assert client.wait() == 0


def waiting(client: "subprocess.Popen[str]") -> dict[str, Any]:
    """Call the tool `waiting`, and return its result."""
    assert client.stdin
    assert client.stdout
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "waiting", "arguments": {}}}
    client.stdin.write(json.dumps(call) + "\n")
    client.stdin.flush()
    result: dict[str, Any] = json.loads(client.stdout.readline())["result"]
    return result
