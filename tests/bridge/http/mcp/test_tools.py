"""The tools of the MCP door, called by the SDK's client over real connections in both eras (rulings S1, S2, S4)."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from mcp.client.client import Client

from activities.store import job_rows, round_rows
from bridge.http.mcp import tools
from bridge.http.mcp.answers import MOST_BYTES
from bridge.http.mcp.tools import TOOLS
from bridge.machine import tokens_file
from bridge.operations.service import Service
from cli.invocation.permitted import DESTROYS, READS, WRITES, effect
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.conftest import caller
from tests.bridge.http.mcp.clients import ERAS, QUESTIONS, connected
from tests.bridge.seeds import ROOT
from tests.waiting import PATIENCE
from workflows.model.orders import ResumeOrder
from workflows.model.rows import QuestionRecord, TaskRecord
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("S2")
MEGABYTE = 1024 * 1024
COMMANDS = {
    "start": ["agent ask", "agent implement", "agent review", "orchestrate verifier"],
    "follow": ["job show"],
    "trees": ["job list"],
    "look": ["job show", "job tree", "job events"],
    "changes": ["job diff"],
    "waiting": ["attention"],
    "answer": ["resume", "resume abort"],
    "finish": ["job merge", "job revise", "job retry", "job review", "job publish"],
    "stop": ["job kill", "job dismiss", "job drop"],
}
"""The commands that call the same operations."""


def paused(service: Service) -> None:
    seeds.paused(service, questions=QUESTIONS)


async def outcome(client: Client, tool: str, **arguments: object) -> tuple[bool, str, Any]:
    """Call a tool: whether it was an error, its text, its structured content."""
    answer = await client.call_tool(tool, arguments)
    text, *_links = answer.content
    assert text.type == "text"
    return bool(answer.is_error), text.text, answer.structured_content


@pytest.mark.ruling("S1")
@pytest.mark.parametrize("era", ERAS)
async def test_both_eras_see_nine_tools_and_call_them(
    service: Service, listening: Callable[[Service], Live], era: str
) -> None:
    paused(service)
    async with connected(listening(service), era=era) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == [*COMMANDS]
        error, text, structured = await outcome(client, "trees", state="waiting")
        assert not error
        assert structured["trees"][0]["job"] == ROOT
        assert f"job: {ROOT}" in text


async def test_the_list_of_tools_fits_into_six_kilobytes(service: Service, call: Any) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    answer = await call.post("/mcp", json=body, headers=headers)
    assert answer.status_code == 200
    assert len(answer.content) < 6 * 1024


def test_what_a_tool_says_of_itself_is_the_table_of_the_commands() -> None:
    weight = [READS, WRITES, DESTROYS]
    for tool in TOOLS:
        most = max((effect(command) for command in COMMANDS[tool.name]), key=weight.index)
        assert tool.effect == most, tool.name


@pytest.mark.ruling("J9", "S2")
async def test_a_repeated_start_is_one_job(with_temporal: Service, listening: Callable[[Service], Live]) -> None:
    wanted = {"agent": "scout", "message": "which module?", "repository": "acme/shop", "request_id": "once"}
    async with connected(listening(with_temporal)) as client:
        first = await outcome(client, "start", **wanted)
        second = await outcome(client, "start", **wanted)
        other = await outcome(client, "start", **wanted | {"message": "another"})
    assert first == second
    assert not first[0]
    assert other[0]
    assert "use a new key" in other[1]
    assert len(job_rows.find(with_temporal.store, job_rows.JobFilter())) == 1


@pytest.mark.ruling("N5", "S4")
@pytest.mark.parametrize(
    ("scope", "tool", "arguments"),
    [
        ("read", "start", {"agent": "scout", "message": "x", "repository": "acme/shop"}),
        ("ask", "start", {"agent": "scout", "message": "x", "repository": "acme/shop", "action": "implement"}),
        ("ask", "answer", {"job": ROOT, "round": 1, "digest": "d", "answers": {"a": "b"}}),
        ("ask", "finish", {"job": ROOT, "how": "merge"}),
        ("ask", "stop", {"job": ROOT, "how": "kill"}),
    ],
)
async def test_a_token_has_no_more_rights_here_than_on_the_routes(
    service: Service, listening: Callable[[Service], Live], scope: str, tool: str, arguments: dict[str, Any]
) -> None:
    paused(service)
    secret = tokens_file.add(service.home, "claude", scope)
    async with connected(listening(service), secret) as client:
        error, text, _ = await outcome(client, tool, **arguments)
    assert error
    assert f"the token claude has {scope}" in text
    assert "service bridge token add NAME --scope" in text


@pytest.mark.ruling("S4")
@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_names_the_token_and_the_client(
    service: Service, listening: Callable[[Service], Live], kept: list[ResumeOrder], era: str
) -> None:
    paused(service)
    secret = tokens_file.add(service.home, "claude", "act")
    async with connected(listening(service), secret, era) as client:
        _, text, waiting = await outcome(client, "waiting")
        [shown] = waiting["rounds"]
        assert [question["id"] for question in shown["questions"]] == [question.id for question in QUESTIONS]
        assert "  | which?" in text
        named = {name: shown[name] for name in ("job", "round", "digest")}
        error, text, _ = await outcome(client, "answer", **named, answers={"store": "redis", "limit": "5\nor 6"})
    assert not error, text
    [order] = kept
    assert (order.channel, order.text) == ("mcp", "store: redis\nlimit: 5\n or 6")
    assert order.actor.startswith("claude through ")


@pytest.mark.ruling("S2", "F5")
async def test_a_stale_answer_is_refused_in_the_words_of_the_command_line(
    service: Service, listening: Callable[[Service], Live], kept: list[ResumeOrder]
) -> None:
    paused(service)
    async with connected(listening(service)) as client:
        wrong_round = {"job": ROOT, "round": 7, "digest": "d", "answers": {"store": "redis"}}
        error, text, _ = await outcome(client, "answer", **wrong_round)
    assert (error, kept) == (True, [])
    assert "try: service " in text


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("nope", {}, "Unknown tool 'nope'. Use one of: start, follow,"),
        ("look", {}, "job is required"),
        ("look", {"job": "x"}, "job must match pattern"),
        ("look", {"job": ROOT, "color": "red"}, "color is not a field of this request"),
        ("look", {"job": "job-000000000000"}, "no job job-000000000000; try: service job list"),
        ("start", {"agent": "a/../../jobs", "message": "x", "repository": "y"}, "agent must match pattern"),
    ],
)
async def test_a_wrong_call_is_answered_in_a_sentence(
    service: Service, listening: Callable[[Service], Live], tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    async with connected(listening(service)) as client:
        error, text, _ = await outcome(client, tool, **arguments)
    assert error
    assert text.startswith(sentence)


async def test_a_long_answer_is_head_and_tail(service: Service, listening: Callable[[Service], Live]) -> None:
    seeds.write(service, seeds.task(state=TaskState.DONE), seeds.job(state=JobState.SUCCEEDED))
    result = {"service_result": {"decision": "answered", "summary": "first", "notes": "x" * 300_000 + "last"}}
    seeds.payload(service, ROOT, result)
    async with connected(listening(service)) as client:
        _, text, structured = await outcome(client, "look", job=ROOT, what="result")
    assert len(text.encode()) < MOST_BYTES
    assert '"summary": "first"' in text[:2048]
    assert "bytes left out; all: service job show" in text
    assert text.rstrip().endswith("}")
    assert structured is None or len(json.dumps(structured)) < 20 * 1024


async def test_following_ends_with_what_needs_somebody(
    service: Service, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    paused(service)
    async with connected(listening(service)) as client:
        _, text, followed = await outcome(client, "follow", job=ROOT)
        assert followed["state"] == "waiting"
        assert followed["needs_you"][0]["questions"][0]["choices"] == ["redis", "memory"]
        monkeypatch.setattr(tools, "FOLLOW_SECONDS", 0.1)
        running: TaskRecord = seeds.task(state=TaskState.OPEN, revision=9)
        seeds.write(service, running)
        _, text, followed = await outcome(client, "follow", job=ROOT)
    assert followed["next"] == [f"follow(job={ROOT})"], text


@pytest.mark.ruling("S8", "N8")
async def test_a_body_beyond_the_limit_is_refused_unread(service: Service) -> None:
    async with caller(service) as client:
        answer = await client.post("/mcp", content=b"x" * (1024 * 1024 + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.ruling("S8")
async def test_without_a_token_nothing_is_listed(service: Service) -> None:
    async with caller(service, Authorization="Bearer wrong") as client:
        answer = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


@pytest.mark.ruling("J2", "S1")
async def test_messages_count_apart_and_orders_as_calls(service: Service, listening: Callable[[Service], Live]) -> None:
    service.home.config.write_text(service.home.config.read_text().replace("1000000", "2"))
    paused(service)
    async with connected(listening(service), era="2026-07-28") as client:
        for _ in range(6):
            assert not (await outcome(client, "waiting"))[0]
        texts = [(await outcome(client, "finish", job=ROOT, how="merge"))[1] for _ in range(3)]
    assert ["too many requests: 2 a minute" in text for text in texts] == [False, False, True]


@pytest.mark.ruling("F5.whole", "S4")
@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"store": "redis"}, "nothing answers `limit`"),
        ({"store": "big", "limit": "5"}, "`big` is not one of the choices of `store`"),
        ({"limit": "5\nstore: memory", "store": "redis"}, "would be read as the answer to that one"),
    ],
)
async def test_an_answer_that_is_not_whole_is_refused_as_on_every_channel(
    service: Service,
    listening: Callable[[Service], Live],
    kept: list[ResumeOrder],
    answers: dict[str, str],
    why: str,
) -> None:
    paused(service)
    [asked] = round_rows.open_rounds(service.store, root=ROOT)
    named = {"job": ROOT, "round": asked.number, "digest": asked.digest}
    async with connected(listening(service)) as client:
        error, text, _ = await outcome(client, "answer", **named, answers=answers)
    assert kept == []
    assert error
    assert why in text


@pytest.mark.ruling("S1")
async def test_the_first_messages_may_come_at_once(service: Service, listening: Callable[[Service], Live]) -> None:
    live = listening(service)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    async with live.client() as http:
        answers = await asyncio.gather(*(http.post("/mcp", json=body, headers=headers) for _ in range(8)))
    assert [answer.status_code for answer in answers] == [200] * 8


@pytest.mark.ruling("S8")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_no_stream_is_held_open_for_messages_that_never_come(service: Service, method: str) -> None:
    async with caller(service, accept="text/event-stream") as client:
        answer = await asyncio.wait_for(client.request(method, "/mcp"), PATIENCE)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.ruling("J6", "S2")
async def test_no_path_of_this_machine_is_shown(service: Service, listening: Callable[[Service], Live]) -> None:
    seeds.repo(service)
    locked = QuestionRecord(id="lock", prompt="Why is /srv/checkouts/shop locked?", job_id=ROOT)
    seeds.paused(service, questions=(locked,))
    async with connected(listening(service)) as client:
        _, text, structured = await outcome(client, "waiting")
    assert "Why is [path] locked?" in text
    assert "/srv/" not in text + json.dumps(structured)


@pytest.mark.ruling("N8", "S8")
async def test_a_body_of_a_hundred_megabytes_is_refused_and_never_held(service: Service) -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield bytes(MEGABYTE)

    async with caller(service) as client:
        tracemalloc.start()
        try:
            answer = await client.post("/mcp", content=body())
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert most < 10 * MEGABYTE


@pytest.mark.ruling("N5", "S1")
async def test_a_page_of_another_origin_calls_no_tool(service: Service) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with caller(service, origin="http://elsewhere.example") as client:
        answer = await client.post("/mcp", json=body)
    assert answer.status_code == 403, answer.text
    assert "result" not in answer.json()


@pytest.mark.ruling("S8")
async def test_a_client_of_an_unknown_era_is_told_in_a_sentence(service: Service, call: Any) -> None:
    era = "1999-01-01"
    names = {"protocolVersion": era, "clientCapabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in names.items()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": era, "mcp-method": "tools/list"}
    answer = await call.post("/mcp", json=body, headers=headers)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["message"] == "Unsupported protocol version"
    assert error["data"]["requested"] == era
