"""Publishing from a tree's page, and the link to the pull request (ruling L9)."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from activities.settings.home import Home
from activities.store.github import facts
from bridge.operations.branches import publish
from bridge.operations.service import Service
from tests.bridge.http.dashboard.surfer import Surfer
from tests.bridge.published import FACT, LEGS, SHOP, TASK_BRANCH, Scene, scene
from tests.bridge.seeds import ROOT
from workflows.contract.models import Action

pytestmark = pytest.mark.ruling("L9", "M3")
TREE, URL = f"/ui/trees/{ROOT}", "https://github.com/acme/shop/pull/4"
CHANGES = f"{TREE}/changes"


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Iterator[Scene]:
    home.config.write_text("[temporal]\nport = 1\n")
    with scene(home, tmp_path) as made:
        made.task()
        yield made
        made.service.store.dispose()


@pytest_asyncio.fixture
async def ann(tree: Scene) -> AsyncIterator[Surfer]:
    async with Surfer(tree.service) as surfer:
        await surfer.enter()
        yield surfer


async def test_who_presses_publish_sees_the_pull_request_once_it_is_there(tree: Scene, ann: Surfer) -> None:
    tree.run()
    shown = await ann.open(CHANGES)
    shown = await ann.send(shown.form(f"{TREE}/publish"), "Publish")
    assert f"It will be published at {SHOP}" in shown.words
    assert f"{TASK_BRANCH} is being published" in shown.words
    assert publish.publication(tree.fact).actor.endswith(", on the page")
    facts.mark_written(tree.service.store, FACT, github_id="4", url=URL)
    shown = await ann.open(CHANGES)
    assert URL in shown.read.links
    assert f"{TASK_BRANCH} is published" in shown.words


async def test_why_it_failed_stands_there(tree: Scene, ann: Surfer) -> None:
    tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    facts.give_up(tree.service.store, FACT, "<b>somebody else pushed</b>")
    shown = await ann.open(CHANGES)
    assert f"{TASK_BRANCH} is not published: <b>somebody else pushed</b>" in shown.words
    assert "<b>somebody else" not in shown.html


async def test_a_refusal_names_the_next_command(tree: Scene, ann: Surfer) -> None:
    tree.job(action=Action.ASK)
    for name in "ab":
        tree.run(LEGS[name], delegation_id=name)
    shown = await ann.open(CHANGES)
    shown = await ann.send(shown.form(f"{TREE}/publish"), "Publish")
    assert f"{TASK_BRANCH} is not made yet. Try: service job merge {ROOT}" in shown.words


async def test_nothing_is_offered_where_it_cannot_be(tree: Scene) -> None:
    tree.run()
    tree.service.home.config.write_text("[temporal]\nport = 1\n")
    async with Surfer(Service(tree.service.home)) as ann:
        await ann.enter()
        assert f"{TREE}/publish" not in (await ann.open(CHANGES)).html
