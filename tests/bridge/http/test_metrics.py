"""`GET /metrics`: figures of all hosts, for who has a token, by few statements."""

import time

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import event as happening
from sqlalchemy import insert, update

from activities.store import schema
from activities.store.registry import host_rows
from bridge.operations.health import metrics
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.conftest import caller
from workflows.model.spend import Usage
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("Q9")


def seed(service: Service) -> None:
    used = {"usage": Usage(input_tokens=1000, output_tokens=10), "cost_usd": 0.25, "model": "large"}
    seeds.paused(service)
    done = "job-0123456789ac"
    asked = seeds.event(1, done, kind="result_repaired")
    seeds.write(service, seeds.task(done), seeds.job(done, state=JobState.SUCCEEDED, **used), asked)
    for number, ago in enumerate((60, 10)):
        root = f"job-0123456789b{number}"
        seeds.write(service, seeds.task(root), seeds.job(root, state=JobState.QUEUED, queued_at=time.time() - ago))
        with service.store.begin() as connection:
            connection.execute(insert(schema.trees).values(root_job_id=root, host="web-1", start={}, revision=1))
    nowhere, reason = "job-0123456789d0", "no host has the label gpu"
    seeds.write(service, seeds.task(nowhere), seeds.job(nowhere, state=JobState.QUEUED, reason=reason))
    with service.store.begin() as connection:
        connection.execute(insert(schema.trees).values(root_job_id=nowhere, host="web-1", start={}, revision=1))
    host_rows.see(service.store, "web-1", slots=8, started_at=1.0, taken=5)
    host_rows.see(service.store, "web-2", slots=4, started_at=1.0, taken=4)
    with service.store.begin() as connection:
        away = update(schema.hosts).where(schema.hosts.c.name == "web-2")
        connection.execute(away.values(seen_at=time.time() - 120))


async def test_the_figures_are_shown_in_prometheus_format(service: Service, call: httpx.AsyncClient) -> None:
    seed(service)
    answer = await call.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    shown = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert {key: shown[key] for key in shown if key[0].startswith("service_host_slots")} == {
        ("service_host_slots", "web-1"): 8, ("service_host_slots", "web-2"): 4,
        ("service_host_slots_used", "web-1"): 3, ("service_host_slots_used", "web-2"): 4,
        ("service_host_slots_free", "web-1"): 5, ("service_host_slots_free", "web-2"): 0,
    }  # fmt: skip
    assert (shown["service_host_up", "web-1"], shown["service_host_up", "web-2"]) == (1, 0)
    assert 110 < shown["service_host_seen_age_seconds", "web-2"] < 180
    assert shown["service_hosts_unseen",] == 1
    assert shown["service_jobs_queued", "web-1", "", "shell"] == 2
    assert shown["service_jobs_queued", "", "", "shell"] == 1, "no host can run it"
    assert 50 < shown["service_jobs_queued_oldest_seconds", "web-1", "", "shell"] < 120
    assert shown["service_trees", "awaiting_human"] == 1
    assert shown["service_rounds_open", "ask"] == 1
    assert shown["service_rounds_open_oldest_seconds", "ask"] > 0
    assert shown["service_tokens_total", "input", "large"] == 1000
    assert shown["service_cost_dollars_total", "large"] == 0.25
    assert shown["service_results_repaired_total", "large", "shell"] == 1
    assert shown["service_bounds_tripped_total", "delegation_width_exceeded"] == 0


async def test_models_that_agents_make_up_are_shown_as_one(
    service: Service, call: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST_MODELS", 2)
    for number, model in enumerate(("large", None, "made-up-1", "made-up-2")):
        job = f"job-0123456789c{number}"
        used = {"usage": Usage(input_tokens=1000 - number), "cost_usd": 0.5, "model": model}
        seeds.write(service, seeds.task(job), seeds.job(job, state=JobState.SUCCEEDED, **used))
    text = (await call.get("/metrics")).text
    assert [line for line in text.splitlines() if line.startswith(("service_tokens_total", "service_cost"))] == [
        'service_tokens_total{direction="input",model="large"} 1000.0',
        'service_tokens_total{direction="output",model="large"} 0.0',
        'service_tokens_total{direction="input",model="unknown"} 999.0',
        'service_tokens_total{direction="output",model="unknown"} 0.0',
        'service_tokens_total{direction="input",model="other"} 1995.0',
        'service_tokens_total{direction="output",model="other"} 0.0',
        'service_cost_dollars_total{model="large"} 0.5',
        'service_cost_dollars_total{model="unknown"} 0.5',
        'service_cost_dollars_total{model="other"} 1.0',
    ]


async def test_scrapes_cost_few_statements_and_none_while_the_figures_are_fresh(
    service: Service, call: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    happening.listen(service.store, "before_cursor_execute", lambda *words: sent.append(words[2]))

    async def statements() -> int:
        sent.clear()
        assert (await call.get("/metrics")).status_code == 200
        return len(sent)

    assert await statements() == 10
    seed(service)
    assert await statements() == 0
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 0.0)
    assert await statements() == 8


async def test_it_takes_a_token(service: Service) -> None:
    async with caller(service, Authorization="Bearer wrong") as call:
        assert (await call.get("/metrics")).status_code == 401
