"""A question as a form of a client that has forms and no tasks, in the call of `follow` (ruling S3)."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client.client import Client
from mcp_types import ElicitRequestParams, ElicitResult

from bridge.machine import tokens_file
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.mcp.clients import ERAS, QUESTIONS, connected
from tests.bridge.seeds import ROOT
from workflows.model.orders import ResumeOrder
from workflows.model.rounds import RoundEnd
from workflows.model.states import TaskState

pytestmark = pytest.mark.ruling("S3")
NEWEST = ERAS[-1]
FILLED = ElicitResult(action="accept", content={"store": "redis", "limit": "5"})
Listening = Callable[[Service], Live]


class Person:
    """A person at a client with forms: sees each, and answers all alike."""

    def __init__(self, answer: ElicitResult, before: Callable[[], None] = lambda: None) -> None:
        self.seen = list[dict[str, Any]]()
        self._answer, self._before = answer, before

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        del context
        self.seen.append(params.model_dump())
        self._before()
        return self._answer


@asynccontextmanager
async def seated(live: Live, person: Person, scope: str = "act", era: str = NEWEST) -> AsyncIterator[Client]:
    secret = tokens_file.add(live.service.home, "claude", scope)
    async with connected(live, secret, era, person) as client:
        yield client


async def follow(client: Client) -> tuple[bool, str]:
    """Follow the task: whether that was an error, and the text."""
    answer = await client.call_tool("follow", {"job": ROOT})
    text = answer.content[0]
    assert text.type == "text"
    return bool(answer.is_error), text.text


async def test_the_question_is_a_form_in_the_call_and_its_answer_goes_to_the_round(
    service: Service, listening: Listening, kept: list[ResumeOrder]
) -> None:
    seeds.paused(service, questions=QUESTIONS)
    person = Person(FILLED)
    async with seated(listening(service), person) as client:
        error, text = await follow(client)
    assert not error, text
    [form] = person.seen
    assert f"({ROOT}) asks." in form["message"]
    assert form["requested_schema"]["properties"]["store"]["enum"] == ["redis", "memory"]
    [order] = kept
    assert order.text == "store: redis\nlimit: 5"
    assert order.actor.startswith("claude through a form of ")
    assert (order.round, order.digest) == (1, seeds.round_().digest)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_form_that_is_put_away_answers_nothing_and_does_not_come_back_in_the_call(
    service: Service, listening: Listening, kept: list[ResumeOrder], action: Any
) -> None:
    seeds.paused(service, questions=QUESTIONS)
    person = Person(ElicitResult(action=action))
    async with seated(listening(service), person) as client:
        error, text = await follow(client)
    assert not error
    assert "| which?" in text
    assert len(person.seen) == 1
    assert kept == []


@pytest.mark.ruling("S3", "F4")
async def test_a_stale_form_is_refused_with_whose_answer_counted(
    service: Service, listening: Listening, kept: list[ResumeOrder]
) -> None:
    seeds.paused(service, questions=QUESTIONS)

    def somebody_was_faster() -> None:
        over: dict[str, Any] = {"end": RoundEnd.ANSWERED, "closed_at": 9.0, "closed": "answered by ann, on the page"}
        ended = seeds.round_(questions=QUESTIONS, revision=9, verbs=(), commands=(), **over)
        seeds.write(service, seeds.task(state=TaskState.OPEN, revision=9), ended)

    async with seated(listening(service), Person(FILLED, somebody_was_faster)) as client:
        error, text = await follow(client)
    assert error
    assert "too late; nothing was done" in text
    assert "answered by ann, on the page" in text
    assert kept == []


@pytest.mark.ruling("S3", "S4")
@pytest.mark.parametrize(("scope", "era"), [("ask", NEWEST), ("act", "legacy")])
async def test_nobody_is_asked_by_a_token_that_may_not_answer_or_in_a_protocol_that_needs_a_session(
    service: Service, listening: Listening, scope: str, era: str
) -> None:
    seeds.paused(service, questions=QUESTIONS)
    person = Person(FILLED)
    async with seated(listening(service), person, scope, era) as client:
        error, text = await follow(client)
    assert not error
    assert "| which?" in text
    assert person.seen == []
