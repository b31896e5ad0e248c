"""`POST /v1/jobs/JOB/publish` is idempotent (ruling L9)."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from activities.settings.home import Home
from bridge.http.app import create_app
from bridge.operations.branches import publish
from tests.bridge.conftest import bearer
from tests.bridge.http.conftest import BASE
from tests.bridge.published import FACT, LEGS, SHOP, TASK_BRANCH, Scene, scene
from tests.bridge.seeds import ROOT
from workflows.contract.models import Action

pytestmark = pytest.mark.ruling("L9", "J6")
PATH = f"/v1/jobs/{ROOT}/publish"


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Iterator[Scene]:
    with scene(home, tmp_path) as made:
        made.task()
        yield made
        made.service.store.dispose()


def caller(tree: Scene) -> httpx.AsyncClient:
    app = httpx.ASGITransport(create_app(tree.service))
    return httpx.AsyncClient(transport=app, base_url=BASE, headers=bearer(tree.service))


async def test_it_is_wanted_once(tree: Scene) -> None:
    tree.run()
    async with caller(tree) as client:
        answers = [await client.post(PATH, json={"base": "stable"}), await client.post(PATH)]
    assert [each.status_code for each in answers] == [200, 200]
    answer = answers[0].json()
    assert (answer["branch"], answer["state"], answer["github"], answer["url"]) == (TASK_BRANCH, "push", SHOP, "")
    assert tree.fact.fact_id == FACT
    assert publish.publication(tree.fact).base == "stable"


async def test_a_refusal_says_what_to_type(tree: Scene) -> None:
    tree.job(action=Action.ASK)
    for name in "ab":
        tree.run(LEGS[name], delegation_id=name)
    async with caller(tree) as client:
        refused = await client.post(PATH)
        strange = await client.post("/v1/jobs/job-ffffffffffff/publish")
    assert refused.status_code == 409
    assert f"service job merge {ROOT}" in refused.text
    assert strange.status_code == 404
