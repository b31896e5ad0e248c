"""Pipelines and memory over HTTP: every status and every limit of the tables (rulings J4, J5, J8)."""

import asyncio
import json
import os
from collections import Counter
from typing import Any

import httpx
import pytest

from activities.runs.os_processes import identity
from activities.settings import ready
from activities.store.registry import memory_rows, pipeline_rows
from activities.store.registry.memory_rows import NewMemory
from bridge.operations.pipelines import runs
from bridge.operations.pipelines.runs import RunList, RunView
from bridge.operations.service import Service
from bridge.operations.temporal import client_of
from tests.bridge import seeds
from tests.bridge.http.conftest import caller, scout
from tests.bridge.seeds import RUN, register
from workflows.model import ids
from workflows.pipeline.read import read
from workflows.pipeline.syntax import Format


@pytest.fixture
def path(service: Service) -> str:
    """Register a pipeline that could run if Temporal were there: a 503 means that every rule was passed."""
    seeds.repo(service)
    return register(service)


PASSED = 503


def filled(total: int) -> dict[str, str]:
    """Return a payload of so many bytes of keys and values."""
    return {"a": "x" * (32 * 1024), "b": "x" * (total - 32 * 1024 - 2)}


PAYLOADS: tuple[tuple[Any, int], ...] = (
    ({}, PASSED),
    ({f"k{n}": "" for n in range(32)}, PASSED),
    ({f"k{n}": "" for n in range(33)}, 400),
    ({"a": "v"}, PASSED),
    ({"": "v"}, 400),
    ({"k" * 64: "v"}, PASSED),
    ({"k" * 65: "v"}, 400),
    *(({key: "v"}, 400) for key in ("A", "1a", "_a", "a-b", "a b", "é", "aé", "a\n", "a.b")),
    ({"a_1": "v"}, PASSED),
    ({"a": "x" * (32 * 1024)}, PASSED),
    ({"a": "x" * (32 * 1024 + 1)}, 400),
    ({"a": "é" * (16 * 1024)}, PASSED),
    ({"a": "é" * (16 * 1024) + "x"}, 400),
    ({"a": "😀" * (8 * 1024)}, PASSED),
    ({"a": "😀" * (8 * 1024) + "x"}, 400),
    (filled(48 * 1024), PASSED),
    (filled(48 * 1024 + 1), 400),
    ({"a": "x\0y"}, 400),
    ({"a": 1}, 400),
    ({"a": None}, 400),
    ({"a": ["v"]}, 400),
    ([], 400),
    ("text", 400),
    (None, 400),
)


@pytest.mark.ruling("spec:bridge.payload")
async def test_a_payload_is_bounded(call: httpx.AsyncClient, path: str) -> None:
    for payload, status in PAYLOADS:
        answer = await call.post(path, json={"payload": payload})
        assert answer.status_code == status, (payload, answer.text[:300])


@pytest.mark.ruling("spec:bridge.payload")
async def test_a_value_that_is_no_text_is_refused(call: httpx.AsyncClient, path: str) -> None:
    headers = {"Content-Type": "application/json"}
    for raw in (b'{"payload": {"a": "\\ud800"}}', b'{"payload": {"a": "\xff"}}', b'{"payload": {"a": "1", "a": "2"}}'):
        assert (await call.post(path, content=raw, headers=headers)).status_code == 400
    assert (await call.post(path, json={"payload": {}, "priority": 1})).status_code == 400


@pytest.mark.ruling("J4")
class TestRun:
    @pytest.mark.parametrize(
        ("name", "more", "status", "why"),
        [
            ("absent", None, 404, "no pipeline absent"),
            ("idle", "repo: acme/shop\nenabled: false", 400, "the pipeline idle is disabled"),
            ("loose", "", 400, "the pipeline loose has no repo"),
            ("strange", "repo: acme/none", 400, "acme/none is not registered"),
        ],
    )
    async def test_what_may_not_run_is_refused(
        self, service: Service, call: httpx.AsyncClient, path: str, name: str, more: str | None, status: int, why: str
    ) -> None:
        if more is not None:
            register(service, name, more)
        answer = await call.post(RUN.format(name))
        assert (answer.status_code, why in answer.json()["error"]) == (status, True), answer.text
        bad = await call.post(RUN.format(name), json={"payload": {"BAD": "x"}})
        assert bad.status_code == (404 if more is None else 400), "the words are looked at before what may run"

    async def test_a_stage_that_no_agent_may_run_is_no_active_run(
        self, service: Service, call: httpx.AsyncClient, path: str
    ) -> None:
        """409 is reserved for conditions that pass by themselves (spec: bridge statuses)."""
        text = (
            "name: crew\nrepo: acme/shop\nstages:\n- {id: look, kind: agent, agent: nobody, action: ask, prompt: x}\n"
        )
        pipeline_rows.put(service.store, read(text, Format.YAML), text, Format.YAML)
        answer = await call.post(RUN.format("crew"))
        assert (answer.status_code, answer.json()["code"]) == (400, "pipeline_not_runnable")
        assert "stage look of crew: no agent nobody" in answer.json()["error"]
        named = text.replace("agent: nobody", "agent: runtime_a")
        pipeline_rows.put(service.store, read(named, Format.YAML), named, Format.YAML)
        answer = await call.post(RUN.format("crew"))
        assert "stage look of crew: runtime_a is the name of a runtime, not of an agent" in answer.json()["error"]

    @pytest.mark.ruling("C6")
    async def test_a_stage_whose_template_does_not_exist_cannot_be_run(
        self, service: Service, call: httpx.AsyncClient, path: str
    ) -> None:
        worker = "{runtime: runtime_a, template: careful}"
        stage = f"{{id: look, kind: agent, ephemeral: {worker}, action: ask, prompt: x}}"
        text = f"name: crew\nrepo: acme/shop\nstages:\n- {stage}\n"
        pipeline_rows.put(service.store, read(text, Format.YAML), text, Format.YAML)
        answer = await call.post(RUN.format("crew"))
        assert (answer.status_code, answer.json()["code"]) == (400, "pipeline_not_runnable")
        assert "stage look of crew: no registered agent careful with a template" in answer.json()["error"]

    @pytest.mark.parametrize("body", [None, {}, {"payload": {}}, {"payload": {"ticket": "SHOP-17"}}])
    async def test_it_starts_a_run_and_names_it(self, with_temporal: Service, body: Any) -> None:
        path = register(with_temporal, f"p{abs(hash(str(body)))}")
        async with caller(with_temporal) as client:
            answer = await client.post(path, json=body) if body is not None else await client.post(path)
            assert answer.status_code == 200, answer.text
            assert list(answer.json()) == ["run_id"]
            run_id = answer.json()["run_id"]
            assert run_id.startswith("prun-")
            run = (await client.get(f"/v1/runs/{run_id}")).json()
        assert run["payload"] == (body or {}).get("payload", {})
        assert run["trigger"] == "bridge"
        assert run_id in with_temporal.home.audit.read_text()

    async def test_of_fifty_at_once_one_is_started(self, with_temporal: Service) -> None:
        path = register(with_temporal, "fifty")
        async with caller(with_temporal) as client:
            answers = await asyncio.gather(*(client.post(path) for _ in range(50)))
        assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 49}
        assert {answer.json().get("code") for answer in answers} == {None, "active_run"}

    async def test_a_key_finds_the_run_it_started(self, with_temporal: Service) -> None:
        path, key = register(with_temporal, "keyed"), {"Idempotency-Key": "run-1"}
        async with caller(with_temporal) as client:
            answers = await asyncio.gather(*(client.post(path, headers=key) for _ in range(10)))
            assert {answer.status_code for answer in answers} == {200}
            assert len({answer.json()["run_id"] for answer in answers}) == 1
            assert (await client.post(path, json={"payload": {"a": "b"}}, headers=key)).status_code == 409
            assert (await client.post(path, headers={"Idempotency-Key": "run-2"})).status_code == 409

    async def test_a_later_edit_does_not_touch_a_run(self, with_temporal: Service) -> None:
        path = register(with_temporal, "frozen")
        async with caller(with_temporal) as client:
            run_id = (await client.post(path)).json()["run_id"]
        before = runs.definition_of_run(with_temporal, run_id)
        register(with_temporal, "frozen", "repo: acme/shop\nenabled: false")
        assert runs.definition_of_run(with_temporal, run_id) == before


@pytest.mark.ruling("J5")
class TestRuns:
    async def test_a_run_is_told_with_its_stages(self, with_temporal: Service) -> None:
        path = register(with_temporal, "told")
        async with caller(with_temporal) as client:
            run_id = (await client.post(path)).json()["run_id"]
            shown = (await client.get(f"/v1/runs/{run_id}")).json()
            listed = (await client.get("/v1/runs?pipeline=told")).json()
        assert set(shown) == {
            *("id", "pipeline", "pull_request", "issue", "belongs_to"),
            *("trigger", "payload", "state", "reason", "halt_stage", "started_at"),
            *("finished_at", "tokens", "cost_usd", "price_assumed", "stages"),
        }
        assert set(shown["stages"][0]) == {
            *("id", "kind", "needs", "state", "attempt", "job_id", "decision", "summary", "started_at"),
            *("finished_at", "tokens"),
        }
        RunView.model_validate_json(json.dumps(shown))
        RunList.model_validate_json(json.dumps(listed))
        assert [run["id"] for run in listed["runs"]] == [run_id]

    @pytest.mark.ruling("M3")
    async def test_temporal_leads_back_to_the_page_of_a_run(self, with_temporal: Service) -> None:
        with_temporal.home.bridge_ready.write_text(
            ready.Ready(pid=os.getpid(), identity=identity(os.getpid()), address="127.0.0.1:8791").model_dump_json()
        )
        async with caller(with_temporal) as client:
            run_id = (await client.post(register(with_temporal, "led"))).json()["run_id"]
        run = (await client_of(with_temporal)).get_workflow_handle(ids.workflow_id("led"))
        assert await (await run.describe()).static_details() == (
            f"In a terminal: `service pipeline watch {run_id}`\n\nOn the page: http://127.0.0.1:8791/ui/runs/{run_id}"
        )

    async def test_pages_of_runs_follow_one_another(self, with_temporal: Service) -> None:
        async with caller(with_temporal) as client:
            made = [(await client.post(register(with_temporal, f"page{n}"))).json()["run_id"] for n in range(3)]
            first = (await client.get("/v1/runs?limit=2")).json()
            second = (await client.get(f"/v1/runs?limit=2&cursor={first['next_cursor']}")).json()
            assert (await client.get("/v1/runs?cursor=x")).status_code == 400
            assert (await client.get("/v1/runs?cursor=")).status_code == 400
            assert (await client.get("/v1/runs?state=done")).status_code == 400
        assert [run["id"] for run in first["runs"] + second["runs"]] == made[::-1]
        assert second["next_cursor"] is None

    async def test_a_run_is_cancelled_and_one_that_is_not_there_is_not(self, with_temporal: Service) -> None:
        async with caller(with_temporal) as client:
            run_id = (await client.post(register(with_temporal, "ended"))).json()["run_id"]
            cancelled = await client.post(f"/v1/runs/{run_id}/cancel")
            assert (cancelled.status_code, cancelled.json()["id"]) == (200, run_id)
            assert (await client.post(f"/v1/runs/{run_id}/cancel", json={"now": True})).status_code == 400
            for absent in ("/v1/runs/prun-000000000000", "/v1/runs/nonsense"):
                assert (await client.get(absent)).status_code == 404
                assert (await client.post(f"{absent}/cancel")).status_code == 404


RECALL = "/v1/memory/recall"


@pytest.mark.ruling("J8")
class TestRecall:
    async def test_it_finds_what_is_confirmed_best_first(self, service: Service, call: httpx.AsyncClient) -> None:
        scout(service)
        for number, content in enumerate(("deploy with make", "deploy deploy deploy", "nothing of it")):
            memory_rows.write(service.store, NewMemory(None, None, f"k{number}", content, "ann"), confirmed_by="ann")
        memory_rows.write(service.store, NewMemory(None, None, "pending", "deploy later", "ann"))
        entries = (await call.post(RECALL, json={"query": "How do I deploy?"})).json()["entries"]
        assert {entry["key"] for entry in entries} == {"k0", "k1"}
        scores = [entry["score"] for entry in entries]
        assert scores == sorted(scores, reverse=True)
        assert len((await call.post(RECALL, json={"query": "deploy", "limit": 1})).json()["entries"]) == 1

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"query": ""}, 200),
            ({"query": "x", "limit": 100, "repo": "acme/shop", "agent": "scout"}, 200),
            ({"query": "x", "shared": True}, 200),
            ({"query": "x", "shared": True, "agent": "scout"}, 400),
            ({}, 400),
            ({"query": 1}, 400),
            ({"query": "x", "limit": 0}, 400),
            ({"query": "x", "limit": 101}, 400),
            ({"query": "x", "limit": "15"}, 400),
            ({"query": "x", "shared": "yes"}, 400),
            ({"query": "x", "kind": "all"}, 400),
            ({"query": "x", "agent": "nobody"}, 404),
            ({"query": "x", "repo": "acme/none"}, 404),
        ],
    )
    async def test_its_fields_are_checked(
        self, service: Service, call: httpx.AsyncClient, body: dict[str, Any], status: int
    ) -> None:
        scout(service)
        assert (await call.post(RECALL, json=body)).status_code == status
