"""A resume over HTTP: accepted or refused as a whole; a late caller learns whose answer counted (F4, F5)."""

from typing import Any

import httpx
import pytest

from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from tests.secrets.redaction_table import TOKENS
from workflows.model.orders import ResumeOrder
from workflows.model.rounds import RoundEnd
from workflows.model.rows import QuestionRecord
from workflows.model.states import TaskState

SECRET = TOKENS["GitHub personal"]
QUESTIONS = (
    QuestionRecord(id="store", prompt="which?", choices=("redis", "memory"), job_id=ROOT),
    QuestionRecord(id="limit", prompt="how many?", job_id=ROOT),
)


def paused(service: Service) -> None:
    seeds.write(service, seeds.task(state=TaskState.AWAITING_HUMAN), seeds.job(), seeds.round_(questions=QUESTIONS))


@pytest.mark.ruling("F5.whole", "J9")
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"text": "store: redis"}, "nothing answers `limit`"),
        ({"text": "redis"}, "several questions are open"),
        ({"text": "store: redis\nLimit: 5"}, "did you mean `limit`?"),
        ({"text": "store: big\nlimit: 5"}, "`big` is not one of the choices of `store`"),
        ({"text": "store: big", "partial": True}, "`big` is not one of the choices of `store`"),
        ({"text": "store: big", "other": True}, "nothing answers `limit`"),
    ],
)
async def test_what_is_not_whole_is_refused_although_nobody_works(
    service: Service, call: httpx.AsyncClient, kept: list[ResumeOrder], fields: dict[str, Any], why: str
) -> None:
    paused(service)
    answer = await call.post(f"/v1/jobs/{ROOT}/resume", json={"verb": "answer"} | fields)
    assert kept == []
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    assert why in answer.json()["error"]
    assert f"try: service resume {ROOT} answer " in answer.json()["error"]


@pytest.mark.ruling("F5.whole", "J9")
async def test_what_is_meant_goes_on_to_the_tree(
    service: Service, call: httpx.AsyncClient, kept: list[ResumeOrder]
) -> None:
    paused(service)
    body = {"verb": "answer", "text": "store: big", "partial": True, "other": True}
    answer = await call.post(f"/v1/jobs/{ROOT}/resume", json=body)
    assert (answer.json()["applied"], [order.text for order in kept]) == (False, ["store: big"])


@pytest.mark.ruling("F4")
@pytest.mark.parametrize("state", [TaskState.DONE, TaskState.CANCELLED])
async def test_who_comes_after_the_end_is_told_whose_answer_it_was_whatever_temporal_still_knows(
    service: Service, call: httpx.AsyncClient, state: TaskState
) -> None:
    over: dict[str, Any] = {"end": RoundEnd.ANSWERED, "closed_at": 9.0, "closed": "answered by ann at noon"}
    seeds.write(service, seeds.task(state=state), seeds.job(), seeds.round_(**over, verbs=(), commands=()))
    answer = await call.post(f"/v1/jobs/{ROOT}/resume", json={"verb": "answer", "text": "x"})
    assert answer.status_code == 409
    sentence = f"the task {ROOT} has ended ({state}); round 1 of {ROOT} is over: answered by ann at noon"
    assert answer.json()["error"].startswith(sentence)


@pytest.mark.ruling("J9")
async def test_a_verb_that_is_none_is_a_mistake_of_the_call(service: Service, call: httpx.AsyncClient) -> None:
    paused(service)
    answer = await call.post(f"/v1/jobs/{ROOT}/resume", json={"verb": "anwser", "text": "x"})
    assert (answer.status_code, answer.json()["code"]) == (400, "usage")
    assert "answer, retry, continue, abort, extend" in answer.json()["error"]


@pytest.mark.ruling("N7")
@pytest.mark.parametrize(
    "fields",
    [
        {"verb": "answer", "text": f"store: {SECRET}\nlimit: 5"},
        {"verb": "answer", "text": f"store: {'x' * 60} {SECRET}\nlimit: 5"},  # only its beginning is shown
        {"verb": "answer", "text": f"limit: {SECRET}"},
        {"verb": "answer", "text": f"{SECRET}: redis\nlimit: 5"},
        {"verb": SECRET, "text": "x"},
        {"verb": "answer", "text": "x", SECRET: 1},
    ],
)
async def test_a_refused_answer_is_told_without_its_secrets(
    service: Service, call: httpx.AsyncClient, kept: list[ResumeOrder], fields: dict[str, Any]
) -> None:
    paused(service)
    answer = await call.post(f"/v1/jobs/{ROOT}/resume", json=fields)
    assert answer.status_code in (400, 409)
    assert kept == []
    assert SECRET[:12] not in answer.text
