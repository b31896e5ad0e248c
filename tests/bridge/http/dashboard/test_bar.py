"""The bar: areas, their pages, and what is current (ruling M7)."""

import re

import pytest

from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard.surfer import Shown, Surfer

pytestmark = pytest.mark.ruling("M7")

AREAS = {
    "/ui/trees": "Tasks",
    "/ui/jobs": "Tasks",
    "/ui/reviews": "Tasks",
    "/ui/branches": "Tasks",
    "/ui/pipelines": "Pipelines",
    "/ui/runs": "Pipelines",
    "/ui/agents": "Team",
    "/ui/memory": "Team",
    "/ui/doctor": "Team",
    "/ui/spend": "Spend",
    "/ui/settings": "Settings",
    "/ui/": "Attention",
}


def navigation(shown: Shown, label: str) -> str:
    [part] = re.findall(rf'<nav [^>]*aria-label="{label}"[^>]*>.*?</nav>', shown.html, re.DOTALL)
    return str(part)


def current(navigation: str) -> list[str]:
    return re.findall(r'<a [^>]*aria-current="\w+"[^>]*>(\w+)', navigation)


@pytest.mark.parametrize(("path", "area"), AREAS.items())
async def test_each_page_is_in_an_area_and_says_which(ann: Surfer, path: str, area: str) -> None:
    shown = await ann.open(path)
    assert shown.status == 200
    assert current(navigation(shown, "Areas")) == [area]
    pages = [other for other, its in AREAS.items() if its == area]
    if len(pages) > 1:
        inside = navigation(shown, area)
        assert all(f'href="{other}"' in inside for other in pages)
        assert (len(current(inside)), "hidden" in inside) == (1, False)
    hidden = [name for name in ("Tasks", "Pipelines", "Team") if "hidden" in navigation(shown, name)]
    assert set(hidden) == {"Tasks", "Pipelines", "Team"} - {area}


async def test_the_page_of_one_task_is_in_the_area_of_tasks(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(), seeds.job())
    shown = await ann.open(f"/ui/trees/{seeds.ROOT}")
    assert current(navigation(shown, "Areas")) == ["Tasks"]
    assert "hidden" in navigation(shown, "Tasks"), "it has views of its own"


async def test_the_bar_has_the_product_s_name_what_waits_and_a_button_for_a_new_task(service: Service) -> None:
    seeds.paused(service)
    async with Surfer(service) as ann:
        shown = await ann.enter(to="/ui/trees")
    assert "Attention 1 Tasks Pipelines Team Spend Settings" in shown.words
    assert '<a class="brand" href="/ui/" aria-label="service">' in shown.html
    assert '<a class="button main" href="/ui/new" data-key="n">New task</a>' in shown.html


async def test_keys_lead_to_every_page_once(ann: Surfer) -> None:
    keys = re.findall(r'<a [^>]*href="([^"]*)"[^>]*data-key="(\w)"', (await ann.open("/ui/")).html)
    assert len({key for _, key in keys}) == len(keys) == len({to for to, _ in keys})
    kept = {"a": "/ui/", "n": "/ui/new", "t": "/ui/trees", "p": "/ui/pipelines", "g": "/ui/agents"}
    kept |= {"m": "/ui/memory", "r": "/ui/reviews", "s": "/ui/spend", "e": "/ui/settings"}
    assert kept.items() <= {key: to for to, key in keys}.items()
