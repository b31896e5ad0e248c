"""The page of unmerged branches: measured in the background, dropped where a person chooses them."""

from pathlib import Path

import pytest

from bridge.http.dashboard.pages import branches as page
from bridge.http.dashboard.parts.slow_answers import Background
from bridge.operations.branches import drops
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge.grown import Grown, grown
from tests.bridge.http.dashboard.surfer import Surfer
from tests.bridge.seeds import ROOT
from tests.waiting import until

pytestmark = pytest.mark.ruling("O6")
PAGE = "/ui/branches"


@pytest.fixture
def tree(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grown:
    monkeypatch.setattr(page, "WORK", Background(lambda service: drops.find_unmerged(service, drops.Choice())))
    return grown(service, tmp_path)


def branches(tree: Grown) -> str:
    return run_git(tree.repo, "branch", "--list", "service/*")


async def measured(tree: Grown, ann: Surfer) -> None:
    await ann.open(PAGE)
    await until(lambda: page.WORK.last_check(tree.service).at is not None)


async def test_the_chosen_trees_lose_their_branches_once_it_is_confirmed(tree: Grown, ann: Surfer) -> None:
    await measured(tree, ann)
    shown = await ann.open(PAGE)
    assert f"/ui/trees/{ROOT}" in shown.read.links
    assert "Together 3 branches and " in shown.words
    for fields, why in (({}, "no task is chosen"), ({"tree": ROOT}, "tick 'Also drop commits that were never merged'")):
        refused = await ann.send(shown.form(f"{PAGE}/drop"), "Drop the chosen", **fields)
        assert why in refused.words
    assert branches(tree)
    done = await ann.send(shown.form(f"{PAGE}/drop"), "Drop the chosen", tree=ROOT, sure="yes")
    assert "3 branches are dropped. To bring back the first" in done.words
    assert f"/ui/trees/{ROOT}" not in done.read.links
    assert branches(tree) == ""


async def test_where_nothing_is_left_it_says_so(service: Service, ann: Surfer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "WORK", Background(lambda service: []))
    await ann.open(PAGE)
    await until(lambda: page.WORK.last_check(service).at is not None)
    assert "No unmerged branches" in (await ann.open(PAGE)).words
