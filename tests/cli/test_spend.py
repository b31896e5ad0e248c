"""Dollars on a terminal, in JSON and over HTTP: every guessed price is marked (ruling K5)."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from activities.settings.home import Home
from activities.store import run_rows
from activities.store.run_rows import RunStart
from bridge.http.app import create_app
from bridge.operations.jobs.views import Tree
from bridge.operations.service import Service
from cli.main import main
from tests.bridge import seeds
from tests.bridge.conftest import bearer
from tests.bridge.http.conftest import BASE
from tests.pipeline.plans import an_input
from workflows.model.spend import Usage
from workflows.pipeline.plan import RunState
from workflows.pipeline.rows import RunRecords, first_rows

pytestmark = pytest.mark.ruling("K5")

ROOT, LEG = seeds.ROOT, f"{seeds.ROOT}.1"
USED = Usage(input_tokens=1_000, output_tokens=1)
RUN = "prun-0123456789ab"


@pytest.fixture(params=[True, False], ids=["guessed", "known"])
def guessed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def service(home: Home, guessed: bool) -> Iterator[Service]:
    """Seed a tree whose root's price is known, and whose leg's may not be; and a run of equal cost."""
    service = Service(home)
    root = seeds.job(usage=USED, cost_usd=0.25)
    leg = seeds.job(LEG, usage=USED, cost_usd=0.5, price_assumed=guessed)
    seeds.write(service, seeds.task(), root, leg, seeds.round_())
    first = first_rows(an_input())
    over = {"state": RunState.SUCCEEDED, "revision": 1, "tokens": 1_001, "cost_usd": 0.75, "price_assumed": guessed}
    rows = RunRecords(run=first.run.model_copy(update=over))
    run_rows.write(service.store, rows, RunStart("name: nightly", {}))
    yield service
    service.store.dispose()


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def printed_json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(printed(capsys, *words, "--json"))


def test_a_terminal_marks_it(service: Service, guessed: bool, capsys: pytest.CaptureFixture[str]) -> None:
    mark = "~" if guessed else ""
    shown = printed(capsys, "job", "tree", ROOT)
    assert f"cost {mark}$0.75" in shown
    assert "[1,001 tokens, $0.25]" in shown
    assert f"[1,001 tokens, {mark}$0.50]" in shown
    assert f"1000 in, 1 out, {mark}$0.50" in printed(capsys, "job", "show", LEG)
    assert f"spent 2,002 tokens, {mark}$0.75" in printed(capsys, "attention")
    assert f"1,001 tokens, {mark}$0.75" in printed(capsys, "pipeline", "show", RUN)


def test_json_says_it_of_jobs_trees_pauses_and_runs(
    service: Service, guessed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = printed_json(capsys, "job", "tree", ROOT)
    assert [job["price_assumed"] for job in tree["jobs"]] == [False, guessed]
    assert (tree["spent"]["cost_usd"], tree["spent"]["price_assumed"]) == (0.75, guessed)
    assert printed_json(capsys, "job", "show", LEG)["price_assumed"] is guessed
    assert {job["job_id"]: job["price_assumed"] for job in printed_json(capsys, "job", "list", "--jobs")}[
        LEG
    ] is guessed
    assert printed_json(capsys, "attention")["waiting"][0]["price_assumed"] is guessed
    assert printed_json(capsys, "pipeline", "show", RUN)["price_assumed"] is guessed
    assert [run["price_assumed"] for run in printed_json(capsys, "pipeline", "runs")["runs"]] == [guessed]


async def test_http_says_it_too(service: Service, guessed: bool) -> None:
    app = create_app(service)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE, headers=bearer(service)) as client:
        tree = (await client.get(f"/v1/jobs/{ROOT}/tree")).json()
        run = (await client.get(f"/v1/runs/{RUN}")).json()
        job = (await client.get(f"/v1/jobs/{LEG}")).json()
    assert Tree.model_validate(tree).spent.price_assumed is guessed
    assert (run["price_assumed"], job["price_assumed"]) == (guessed, guessed)
