"""A tree as a task of an MCP client: followed, asked by a form, answered once, by its own token (ruling S3)."""

import gc
import sys
import time
from datetime import datetime
from typing import Any

import httpx
import pytest

from bridge.machine import tokens_file
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.conftest import caller
from tests.bridge.seeds import ROOT
from tests.depth import cases
from tests.mcp_messages import TASKS, message
from workflows.model.orders import ResumeOrder
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.rows import FailingRecord, QuestionRecord
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("S3")
QUESTIONS = (
    QuestionRecord(id="store", prompt="which?", choices=("redis", "memory"), job_id=ROOT),
    QuestionRecord(id="limit", prompt="how many?", job_id=ROOT),
)


async def send(
    call: httpx.AsyncClient, method: str, has_tasks: bool = True, header_name: str = "", **params: Any
) -> dict[str, Any]:
    """Send a message as a client of the newest era, and return its answer."""
    headers, body = message(method, TASKS if has_tasks else {}, header_name, **params)
    answer: dict[str, Any] = (await call.post("/mcp", json=body, headers=headers)).json()
    return answer


async def follow(call: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = (await send(call, "tools/call", name="follow", arguments={"job": ROOT}, **more))["result"]
    return result


async def get(call: httpx.AsyncClient, task_id: str) -> dict[str, Any]:
    result: dict[str, Any] = (await send(call, "tasks/get", taskId=task_id))["result"]
    return result


def claude(service: Service, scope: str = "act") -> httpx.AsyncClient:
    """Return a client with a token of its own."""
    secret = tokens_file.add(service.home, "claude", scope)
    return caller(service, Authorization=f"Bearer {secret}")


async def test_a_question_is_a_form_and_its_answer_goes_to_the_round(service: Service, kept: list[ResumeOrder]) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service) as call:
        begun = await follow(call)
        assert (begun["resultType"], begun["status"]) == ("task", "working")
        task = await get(call, begun["taskId"])
        assert task["status"] == "input_required"
        [(key, form)] = task["inputRequests"].items()
        schema = form["params"]["requestedSchema"]
        assert form["method"] == "elicitation/create"
        assert f"({ROOT}) asks." in form["params"]["message"]
        assert schema["required"] == ["store", "limit"]
        assert schema["properties"]["store"]["enum"] == ["redis", "memory"]
        assert schema["properties"]["limit"]["description"] == "how many?"
        answers = {key: {"action": "accept", "content": {"store": "redis", "limit": "5"}}}
        answered = await send(call, "tasks/update", taskId=begun["taskId"], inputResponses=answers)
    assert "error" not in answered
    [order] = kept
    assert (order.actor, order.channel, order.text) == (
        "claude through a form of claude-code",
        "mcp",
        "store: redis\nlimit: 5",
    )
    assert (order.round, order.digest) == (1, seeds.round_().digest)


@pytest.mark.ruling("S3", "S4")
async def test_a_token_that_may_not_answer_gets_the_question_as_text_and_no_form(service: Service) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service, "ask") as call:
        task = await get(call, (await follow(call))["taskId"])
    assert task["status"] == "completed"
    assert "| which?" in task["result"]["content"][0]["text"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_form_that_is_put_away_answers_nothing(service: Service, kept: list[ResumeOrder], action: str) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service) as call:
        task_id = (await follow(call))["taskId"]
        [key] = (await get(call, task_id))["inputRequests"]
        away = await send(call, "tasks/update", taskId=task_id, inputResponses={key: {"action": action}})
        assert "error" not in away
        assert (await get(call, task_id))["status"] == "input_required"
    assert kept == []


@pytest.mark.ruling("S3", "F4")
async def test_a_stale_form_is_refused_with_whose_answer_counted(service: Service, kept: list[ResumeOrder]) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service) as call:
        task_id = (await follow(call))["taskId"]
        [key] = (await get(call, task_id))["inputRequests"]
        over: dict[str, Any] = {"end": RoundEnd.ANSWERED, "closed_at": 9.0, "closed": "answered by ann, on the page"}
        seeds.write(
            service,
            seeds.task(state=TaskState.OPEN, revision=9),
            seeds.round_(questions=QUESTIONS, revision=9, verbs=(), commands=(), **over),
        )
        answers = {key: {"action": "accept", "content": {"store": "redis"}}}
        refused = await send(call, "tasks/update", taskId=task_id, inputResponses=answers)
        seeds.write(service, seeds.task(state=TaskState.DONE, revision=10, ended_at=10.0))
        ended = await get(call, task_id)
    assert kept == []
    assert "is over: answered by ann, on the page" in ended["result"]["content"][0]["text"]
    assert "too late; nothing was done" in refused["error"]["message"]
    assert "answered by ann, on the page" in refused["error"]["message"]


async def test_a_failure_is_a_form_with_the_decisions(service: Service, kept: list[ResumeOrder]) -> None:
    failing = FailingRecord(leg="build", job_id=f"{ROOT}.1", attempt=1, state=JobState.FAILED, reason="tests are red")
    verbs = ("retry", "continue", "abort")
    seeds.paused(service, kind=RoundKind.FAILURE, questions=(), failing=(failing,), verbs=verbs)
    async with claude(service) as call:
        task_id = (await follow(call))["taskId"]
        [(key, form)] = (await get(call, task_id))["inputRequests"].items()
        assert "build: tests are red" in form["params"]["message"]
        assert form["params"]["requestedSchema"]["properties"]["decision"]["enum"] == [*verbs]
        content = {"decision": "retry", "instructions": "run make first"}
        nonsense = {key: {"action": "accept", "content": {"decision": "explode"}}}
        refused = await send(call, "tasks/update", taskId=task_id, inputResponses=nonsense)
        assert "Use one of: retry, continue, abort" in refused["error"]["message"]
        answers = {key: {"action": "accept", "content": content}}
        await send(call, "tasks/update", taskId=task_id, inputResponses=answers)
    assert [(order.verb, order.text) for order in kept] == [("retry", "run make first")]


async def test_the_end_is_the_result_of_the_tool(service: Service) -> None:
    ended = seeds.task(state=TaskState.DONE, ended_at=9.0, reason="All is built.")
    seeds.write(service, ended, seeds.job(state=JobState.SUCCEEDED))
    async with claude(service) as call:
        task = await get(call, (await follow(call))["taskId"])
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"]["state"] == "done"
    assert "All is built." in task["result"]["content"][0]["text"]


async def test_a_task_is_the_token_s_that_made_it(service: Service) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service) as call:
        task_id = (await follow(call))["taskId"]
    async with caller(service) as call:
        refused = [
            await send(call, "tasks/get", taskId=task_id),
            await send(call, "tasks/update", taskId=task_id, inputResponses={}),
            await send(call, "tasks/cancel", taskId=task_id),
        ]
    assert ["Unknown task" in answer["error"]["message"] for answer in refused] == [True] * 3


async def test_a_task_was_created_when_its_tree_was_started(service: Service) -> None:
    seeds.paused(service, questions=QUESTIONS)
    started = jobs.get(service, ROOT).queued_at
    async with claude(service) as call:
        task = await follow(call)
        again = await get(call, task["taskId"])
    for answer in (task, again):
        assert datetime.fromisoformat(answer["createdAt"]).timestamp() == pytest.approx(started, abs=1e-3)
        assert answer["lastUpdatedAt"] >= answer["createdAt"]


async def test_cancelling_stops_following_only(service: Service) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service) as call:
        task_id = (await follow(call))["taskId"]
        assert "error" not in await send(call, "tasks/cancel", taskId=task_id)
        assert (await get(call, task_id))["status"] == "input_required"


async def test_a_client_without_tasks_gets_an_answer(service: Service) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service) as call:
        followed = await follow(call, has_tasks=False)
    assert followed["structuredContent"]["state"] == "waiting"


async def test_a_client_that_names_no_tasks_is_told_which_capability_is_missing(service: Service) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service) as call:
        task_id = (await follow(call))["taskId"]
        refused = [
            await send(call, "tasks/get", has_tasks=False, taskId=task_id),
            await send(call, "tasks/update", has_tasks=False, taskId=task_id, inputResponses={}),
            await send(call, "tasks/cancel", has_tasks=False, taskId=task_id),
        ]
    assert [answer["error"]["code"] for answer in refused] == [-32021] * 3
    assert refused[0]["error"]["data"] == {"requiredCapabilities": TASKS}
    assert "io.modelcontextprotocol/tasks" in refused[0]["error"]["message"]


async def test_a_header_that_names_another_task_is_refused(service: Service) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service) as call:
        task_id = (await follow(call))["taskId"]
        refused = await send(call, "tasks/get", header_name="another", taskId=task_id)
    assert refused["error"]["code"] == -32020


@pytest.mark.ruling("S4", "S8")
async def test_a_token_revoked_in_the_middle_of_a_task_opens_nothing(service: Service, kept: list[ResumeOrder]) -> None:
    seeds.paused(service, questions=QUESTIONS)
    async with claude(service) as call:
        task_id = (await follow(call))["taskId"]
        [key] = (await get(call, task_id))["inputRequests"]
        tokens_file.remove(service.home, "claude")
        answers = {key: {"action": "accept", "content": {"store": "redis", "limit": "5"}}}
        refused = [
            await send(call, "tasks/get", taskId=task_id),
            await send(call, "tasks/update", taskId=task_id, inputResponses=answers),
        ]
    assert [answer["error"] for answer in refused] == ["the token is wrong"] * 2
    assert kept == []


async def test_a_newer_task_whose_title_names_the_followed_one_is_another(service: Service) -> None:
    seeds.write(service, seeds.task(ROOT, state=TaskState.OPEN), seeds.job(ROOT, state=JobState.RUNNING))
    other = "job-999999999999"
    newer = seeds.task(other, state=TaskState.DONE, title=f"repair what {ROOT} broke", opened_at=time.time())
    seeds.write(service, newer, seeds.job(other))
    async with claude(service) as call:
        begun = await send(call, "tools/call", name="follow", arguments={"job": ROOT})
        task = await get(call, begun["result"]["taskId"])
    assert (task["status"], ROOT in task["statusMessage"]) == ("working", True)


@pytest.mark.ruling("S3", "N8")
async def test_following_thousands_of_tasks_keeps_nothing(service: Service) -> None:
    many = cases(60, 10_000)
    for number in range(many):
        root = f"job-{number:012d}"
        seeds.write(service, seeds.task(root, state=TaskState.OPEN), seeds.job(root, state=JobState.RUNNING))

    async def followed(numbers: range) -> None:
        for number in numbers:
            begun = await send(call, "tools/call", name="follow", arguments={"job": f"job-{number:012d}"})
            assert (await get(call, begun["result"]["taskId"]))["status"] == "working"

    async with claude(service) as call:
        await followed(range(many // 2))  # which fills what is bounded: texts that were looked at for secrets
        gc.collect()
        before = sys.getallocatedblocks()
        await followed(range(many // 2, many))
        gc.collect()
    assert sys.getallocatedblocks() - before < max(many // 2, 2_000)
