"""Resources and prompts of the MCP door, read by the SDK's client; open streams updated of changes (ruling S2)."""

from collections.abc import Callable
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.subscriptions import Subscription
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceLink, TextContent, TextResourceContents

from bridge.http.mcp import resources
from bridge.http.wire import store_watch
from bridge.machine import tokens_file
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.mcp.clients import ERAS, QUESTIONS, connected
from tests.bridge.seeds import ROOT
from tests.waiting import soon
from workflows.model.rounds import RoundEnd
from workflows.model.rows import QuestionRecord
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("S2")
TREE = f"service://trees/{ROOT}"
MODERN = "2026-07-28"
LONG = {"service_result": {"decision": "answered", "summary": "first", "notes": "x" * 300_000 + "last"}}


async def read_out(news: Subscription) -> None:
    """Read a stream to its end."""
    async for _ in news:
        pass


async def text_of(client: Client, uri: str) -> str:
    """Read a resource that is one text."""
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


@pytest.mark.parametrize("era", ERAS)
async def test_what_waits_and_the_tasks_are_listed_and_read(
    service: Service, listening: Callable[[Service], Live], era: str
) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with connected(listening(service), era=era) as client:
        listed = (await client.list_resources()).resources
        assert [resource.uri for resource in listed] == [resources.WAITING, TREE]
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template.partition("}")[2] for template in templates] == [
            "",
            *(f"/{part}" for part in resources.PARTS),
        ]
        assert "  | which?" in await text_of(client, resources.WAITING)
        assert f"job: {ROOT}" in await text_of(client, TREE)


async def test_the_link_of_a_long_answer_is_read_whole(service: Service, listening: Callable[[Service], Live]) -> None:
    seeds.write(service, seeds.task(state=TaskState.DONE), seeds.job(state=JobState.SUCCEEDED))
    seeds.payload(service, ROOT, LONG)
    async with connected(listening(service)) as client:
        _, link = (await client.call_tool("look", {"job": ROOT, "what": "result"})).content
        assert isinstance(link, ResourceLink)
        assert link.uri == f"{TREE}/result"
        whole = await text_of(client, link.uri)
    assert LONG["service_result"]["notes"] in whole


async def test_events_and_the_transcript_are_read(service: Service, listening: Callable[[Service], Live]) -> None:
    seeds.paused(service, questions=QUESTIONS)
    seeds.write(service, seeds.event(1, message="it\nwaits"))
    async with connected(listening(service)) as client:
        assert "it\\nwaits" in await text_of(client, f"{TREE}/log")
        assert (await text_of(client, f"{TREE}/transcript")).startswith("transcript:")


@pytest.mark.ruling("J6", "S2")
async def test_a_resource_shows_no_path_of_this_machine(service: Service, listening: Callable[[Service], Live]) -> None:
    seeds.repo(service)
    locked = QuestionRecord(id="lock", prompt="Why is /srv/checkouts/shop locked?", job_id=ROOT)
    seeds.paused(service, questions=(locked,))
    async with connected(listening(service)) as client:
        assert "Why is [path] locked?" in await text_of(client, resources.WAITING)


@pytest.mark.ruling("S8")
@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("file:///etc/passwd", "Unknown resource 'file:///etc/passwd'. Use service://waiting or service://trees/JOB,"),
        (f"{TREE}/../../x", "Unknown resource"),
        ("service://trees/job-000000000000", "no job job-000000000000; try: service job list"),
        ("service://trees/job-000000000000/diff", "no job job-000000000000; try: service job list"),
    ],
)
async def test_an_unknown_resource_is_refused_in_a_sentence(
    service: Service, listening: Callable[[Service], Live], uri: str, sentence: str
) -> None:
    async with connected(listening(service)) as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)
    assert refused.value.error.code == -32602
    assert refused.value.error.message.startswith(sentence)


@pytest.mark.parametrize("era", ERAS)
async def test_each_recipe_is_a_prompt(service: Service, listening: Callable[[Service], Live], era: str) -> None:
    async with connected(listening(service), era=era) as client:
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert names == ["review-panel", "decompose-and-verify", "verifier"]
        given = {"goal": "Build a rate limiter", "repository": "acme/shop"}
        [message] = (await client.get_prompt("verifier", given)).messages
        assert isinstance(message.content, TextContent)
        assert "recipe=verifier and repository acme/shop" in message.content.text
        assert message.content.text.endswith("Build a rate limiter")
        for name, arguments, sentence in (
            ("nope", given, "Unknown prompt 'nope'. Use one of: review-panel,"),
            ("verifier", {"goal": " "}, "The prompt verifier needs a goal."),
        ):
            with pytest.raises(MCPError) as refused:
                await client.get_prompt(name, arguments)
            assert refused.value.error.message.startswith(sentence)


async def test_an_open_stream_is_told_of_what_changed_and_ends_with_its_token(
    service: Service, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(resources, "QUIET_SECONDS", 0.2)
    monkeypatch.setattr(store_watch, "LOOK_SECONDS", 0.05)
    seeds.paused(service, questions=QUESTIONS)
    secret = tokens_file.add(service.home, "claude", "read")
    async with connected(listening(service), secret, MODERN) as client:
        wanted = [resources.WAITING, TREE]
        async with client.listen(resource_subscriptions=wanted, resources_list_changed=True) as news:
            over: dict[str, Any] = {"end": RoundEnd.ANSWERED, "closed_at": 9.0, "closed": "answered by ann"}
            ended = seeds.round_(questions=QUESTIONS, revision=9, verbs=(), commands=(), **over)
            seeds.write(service, seeds.task(state=TaskState.OPEN, revision=9), ended)
            updated = {str(getattr(await soon(anext(news)), "uri", "")) for _ in wanted}
            assert updated == {*wanted}
            tokens_file.remove(service.home, "claude")
            await soon(read_out(news))
