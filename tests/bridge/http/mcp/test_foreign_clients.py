"""The conformance suite of MCP, its inspector and the TypeScript SDK of both eras as clients of the bridge (ruling S1).

They are installed by `dev-cluster/agents`. The suite wants tools of its own, which a server for tests has; of those,
tasks are played by `follow` on seeded trees. What fails must be in `ABSENT`, with the reason, and must go on failing.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bridge.http.app import create_app
from bridge.operations.service import Service
from tests.bridge import conftest, seeds
from tests.bridge.conftest import Live
from tests.bridge.http.mcp.clients import QUESTIONS
from tests.bridge.seeds import ROOT
from tests.e2e.programs import installed, need
from tests.waiting import PATIENCE
from workflows.model.states import JobState, TaskState

pytestmark = [pytest.mark.long, pytest.mark.ruling("S1", "S2", "S3")]
SECONDS = 300
RUNNING, DONE = "job-000000000001", "job-000000000002"
INSPECTOR = Path("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
FOLLOWED = {"confirm_delete": ROOT, "slow_compute": RUNNING}
PASSED = {"2025-06-18": 8, "2025-11-25": 11, "2026-07-28": 77}
"""How many different checks pass."""

OF_A_SERVER_FOR_TESTS = """
    elicitation-sep1034-general elicitation-sep1330-general json-schema-2020-12-tool-found
    prompts-get-embedded-resource prompts-get-simple prompts-get-with-args prompts-get-with-image
    resources-read-binary resources-read-text resources-templates-read sep-2243-server-decode-base64
    sep-2243-server-no-xmcp-tool sep-2243-server-reject-invalid-param-chars
    sep-2243-server-reject-param-mismatch sep-2243-server-validate-param-match sep-2322-elicitation-incomplete
    sep-2322-list-roots-incomplete sep-2322-multi-round-r1 sep-2322-multiple-inputs-incomplete
    sep-2322-non-tool-incomplete sep-2322-reject-tampered-state sep-2322-request-state-incomplete
    sep-2322-respect-client-capabilities sep-2322-result-type-included sep-2322-sampling-incomplete
    sep-2575-missing-capability-http-400 sep-2575-server-rejects-undeclared-capability
    sep-2663-mrtr-synchronous-before-task-creation sep-2663-server-returns-missing-capability-when-required
    sep-2663-tasks-get-status-failed sep-2663-tool-error-uses-completed-status
    tasks-headers-tolerate-mcp-method-on-tools-call tasks-mrtr-partial-fulfillment
    tasks-server-directed-creation-no-hint tools-call-audio tools-call-elicitation tools-call-embedded-resource
    tools-call-image tools-call-mixed-content tools-call-sampling tools-call-with-progress
"""
_OWN = "needs a tool, a prompt or a resource of a server for tests"
_NONE = "the bridge has no completion, no log messages, and before 2026-07-28 no stream to be told of changes by"
ABSENT = {
    **dict.fromkeys(OF_A_SERVER_FOR_TESTS.split(), _OWN),
    **dict.fromkeys(("completion-complete", "logging-set-level", "tools-call-with-logging"), _NONE),
    **dict.fromkeys(("resources-subscribe", "resources-unsubscribe"), _NONE),
    "sep-2663-cancel-ack-empty-result": "the task of a running tree goes on after it was cancelled (S3)",
    "tasks-mrtr-tasks-update-resumes": "no Temporal is here to take the answer; test_mcp_tasks.py has one",
}


class ForTheSuite:
    """The bridge for clients that show no token and call tools of a server for tests."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        body, headers = self._translated(body, dict(scope["headers"]))
        pieces: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return pieces.pop() if pieces else await receive()

        return await self.app({**scope, "headers": [*headers.items()]}, again, send)

    def _translated(self, body: bytes, headers: dict[bytes, bytes]) -> tuple[bytes, dict[bytes, bytes]]:
        headers = {b"authorization": f"Bearer {self._token}".encode(), **headers}
        message = json.loads(body) if body.startswith(b"{") else {}
        params = message.get("params") or {}
        if (job := FOLLOWED.get(params.get("name", ""))) is None:
            return body, headers
        if params.get("arguments", {}).get("seconds", 60) < 10:
            job = DONE
        message["params"] = {**params, "name": "follow", "arguments": {"job": job}}
        body = json.dumps(message).encode()
        return body, headers | {b"content-length": str(len(body)).encode(), b"mcp-name": b"follow"}


@pytest.fixture
def bridge(service: Service, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch) -> Live:
    need("mcp")
    token = service.home.bridge_token

    def app(service: Service) -> ASGIApp:
        inner = create_app(service)
        return ForTheSuite(inner, token.read_text())

    monkeypatch.setattr(conftest, "create_app", app)
    seeds.paused(service, questions=QUESTIONS)
    seeds.write(service, seeds.task(RUNNING, state=TaskState.OPEN), seeds.job(RUNNING, state=JobState.RUNNING))
    seeds.write(service, seeds.task(DONE, state=TaskState.DONE), seeds.job(DONE, state=JobState.SUCCEEDED))
    live = listening(service)
    httpx.post(f"{live.url}/mcp", json={}, timeout=PATIENCE)  # the first call imports the SDK; clients give up earlier
    return live


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_the_conformance_suite_passes_but_for_what_this_server_has_not(
    bridge: Live, tmp_path: Path, version: str
) -> None:
    chosen = ("--requirements", version) if version == "2026-07-28" else ("--spec-version", version)
    run(tmp_path, installed()["mcp"], "server", "--url", f"{bridge.url}/mcp", *chosen, "-o", str(tmp_path / "checks"))
    files = [*(tmp_path / "checks").glob("server-*/checks.json")]
    checks = [check for path in files for check in json.loads(path.read_text())]
    passed = {check["id"] for check in checks if check["status"] == "SUCCESS"}
    failed = {check["id"]: check.get("errorMessage") for check in checks if check["status"] == "FAILURE"}
    assert len(passed) == PASSED[version]
    assert {name: why for name, why in failed.items() if name not in ABSENT} == {}
    assert passed & {*ABSENT} - {*failed} == set()


def test_the_inspector_finds_nothing_to_complain_of(bridge: Live, tmp_path: Path) -> None:
    def inspected(*words: str) -> str:
        return run(tmp_path, *node(), str(INSPECTOR), "--cli", f"{bridge.url}/mcp", "--transport", "http", *words)

    listed = json.loads(inspected("--method", "tools/list", "--strict"))
    assert len(listed["tools"]) == 9
    called = json.loads(inspected("--method", "tools/call", "--tool-name", "trees", "--tool-arg", "state=waiting"))
    assert called["structuredContent"]["trees"][0]["job"] == ROOT
    assert "which?" in inspected("--method", "resources/read", "--uri", "service://waiting")
    goal = ("--prompt-name", "verifier", "--prompt-args", "goal=build it")
    assert "build it" in inspected("--method", "prompts/get", *goal)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_the_typescript_sdk_calls_reads_and_is_refused_in_words(bridge: Live, tmp_path: Path, era: str) -> None:
    script = Path(__file__).with_name("typescript_client.mjs")
    answers = json.loads(run(tmp_path, *node(), str(script), str(folder()), era, f"{bridge.url}/mcp"))
    assert len(answers["tools"]) == 9
    [asked] = answers["waiting"]["structuredContent"]["rounds"]
    assert asked["questions"][0]["choices"] == ["redis", "memory"]
    assert answers["refused"]["isError"]
    assert answers["refused"]["content"][0]["text"].startswith("job must match pattern")
    assert answers["resources"][0] == "service://waiting"
    assert "  | which?" in answers["read"]
    assert answers["prompt"].endswith("build it")


def folder() -> Path:
    """Return the folder of the installed tools."""
    return Path(installed()["mcp"]).parent


def node() -> tuple[str]:
    """Return the command of the Node that is installed with them."""
    return (str(next(folder().glob("node_modules/node-linux-*/bin/node"))),)


def run(home: Path, *command: str) -> str:
    """Run a command in a home of its own, and return what it printed."""
    words = [str(folder() / word) if word == str(INSPECTOR) else word for word in command]
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout, done.stderr
    return done.stdout
