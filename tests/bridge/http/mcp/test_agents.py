"""Agents that act as people through the MCP door: from every kind of box and from none, over HTTP, by a form, and by
`service mcp` (rulings N5, S4).
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from activities.boxes.box import Network
from activities.store import job_rows
from bridge.http.app import create_app
from bridge.machine import tcp_callers, tokens_file
from bridge.operations.service import Service
from cli import mcp_stdio
from tests.activities.boxes.world import World, built
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.seeds import ROOT
from workflows.model.orders import ResumeOrder
from workflows.model.rows import QuestionRecord

pytestmark = pytest.mark.ruling("N5", "S4")
QUESTION = QuestionRecord(id="store", prompt="which?", choices=("redis", "memory"), job_id=ROOT)
CALLS = {
    "answer": {"job": ROOT, "round": 1, "digest": "d", "answers": {"store": "redis"}},
    "start": {"agent": "scout", "message": "go on", "repository": "acme/shop"},
    "finish": {"job": ROOT, "how": "merge"},
    "stop": {"job": ROOT, "how": "kill"},
    "look": {"job": ROOT},
}
ATTACKS = r"""
import json, os, pathlib, subprocess, sys, tempfile, urllib.request
url, token, calls, stdio = json.loads(sys.argv[1])
TASKS, NEW = {"extensions": {"io.modelcontextprotocol/tasks": {}}}, "2026-07-28"
reach = urllib.request.build_opener(urllib.request.ProxyHandler({}))

def over_http(method, **params):
    meta = {"protocolVersion": NEW, "clientInfo": {"name": "claude-code", "version": "2"}, "clientCapabilities": TASKS}
    params["_meta"] = {"io.modelcontextprotocol/" + name: value for name, value in meta.items()}
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json", "Mcp-Method": method}
    headers |= {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": NEW}
    headers["Mcp-Name"] = params.get("name") or params["taskId"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    with reach.open(urllib.request.Request(url + "/mcp", json.dumps(body).encode(), headers), timeout=60) as answer:
        return json.load(answer)

def over_stdio(method, **params):
    home = pathlib.Path(tempfile.mkdtemp(dir="."))
    (home / "daemon.json").write_text(json.dumps({"bridge_url": url}))
    words = [sys.executable, "-I", "-c", stdio + "\nrun()\n"]
    env = {"SERVICE_HOME": str(home), "SERVICE_MCP_TOKEN": token}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as client:
        client.stdin.write(line + b"\n")
        client.stdin.flush()
        return json.loads(client.stdout.readline())

def by_form():
    task = over_http("tools/call", name="follow", arguments=calls["look"])["result"]["taskId"]
    [form] = over_http("tasks/get", taskId=task)["result"]["inputRequests"]
    accepted = {form: {"action": "accept", "content": {"store": "redis"}}}
    return over_http("tasks/update", taskId=task, inputResponses=accepted)

def said(attack, *words, **params):
    try:
        answer = attack(*words, **params)
        return answer["error"]["message"] if "error" in answer else answer["result"]["content"][0]["text"]
    except Exception as error:
        return repr(error) + (error.read().decode() if hasattr(error, "read") else "")

came = {}
for way, attack in {"http": over_http, "stdio": over_stdio}.items():
    for tool, arguments in calls.items():
        came[f"{tool} by {way}"] = said(attack, "tools/call", name=tool, arguments=arguments)
came["answer by a form"] = said(by_form)
print(json.dumps(came))
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with built(tmp_path / "world") as there:
        yield there


REFUSED, UNREACHABLE = "is for people, and an agent of", ("Connection refused", "The service is down")


@pytest.mark.parametrize(
    ("network", "bridge_named", "reaches"),
    [
        (None, False, True),
        (Network.NONE, False, False),
        (Network.MODEL, False, False),
        (Network.MODEL, True, True),
        (Network.FULL, False, True),
    ],
    ids=["no box", "no network", "named hosts", "the bridge among the named hosts", "the whole network"],
)
async def test_an_agent_with_a_found_token_orders_nothing_by_any_tool(
    world: World,
    service: Service,
    listening: Callable[[Service], Live],
    kept: list[ResumeOrder],
    monkeypatch: pytest.MonkeyPatch,
    network: Network | None,
    bridge_named: bool,
    reaches: bool,
) -> None:
    monkeypatch.setattr("tests.bridge.conftest.create_app", partial(create_app, agent_at=tcp_callers.agent_at))
    seeds.paused(service, questions=(QUESTION,))
    live, token = listening(service), tokens_file.add(service.home, "mcp-claude", "act")
    box = world.box(network, hosts=(str(live.address),) if bridge_named else ()) if network else None
    words = json.dumps([live.url, token, CALLS, Path(mcp_stdio.__file__).read_text()])
    end = await world.play(box, ATTACKS, argv=(*world.request(box, ATTACKS).argv, words))
    answers: dict[str, str] = json.loads(end.stdout.read_text())
    looks = {answers.pop(f"look by {way}") for way in ("http", "stdio")}
    assert len(answers) == 9
    if reaches:
        assert all(REFUSED in text for text in answers.values()), answers
        assert all(f"job: {ROOT}" in text for text in looks), looks
    else:
        assert all(any(words in text for words in UNREACHABLE) for text in (*answers.values(), *looks)), answers
    assert not kept
    assert [row.job_id for row in job_rows.find(service.store, job_rows.JobFilter())] == [ROOT]
