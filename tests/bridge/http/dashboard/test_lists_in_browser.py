"""Lists in a real browser: lines of one height, what unfolds, the way to the work (rulings M4, M8)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.dashboard import planted
from tests.e2e.browser import needs_browser, person, pictures, until_shown

pytestmark = [pytest.mark.ruling("M4", "M8"), pytest.mark.long, needs_browser]
HEIGHTS = "[...document.querySelectorAll('.line')].map((line) => line.getBoundingClientRect().height)"
LONG = "A title that is much longer than a line is, and says again what it said before: " * 3


@pytest.fixture
def bridge(service: Service, tmp_path: Path, listening: Callable[[Service], Live]) -> Live:
    planted.writers(service, tmp_path, {"a": ("limiter.py", "limit = 2\n")}, title=LONG)
    seeds.paused(service, "job-00000000000a", repo="acme/a-repository-with-a-very-long-name")
    seeds.write(service, seeds.task("job-00000000000b"), seeds.job("job-00000000000b", cost_usd=1.5))
    return listening(service)


@pytest.mark.parametrize(("width", "height"), [(1280, 36), (1920, 36), (360, 62)])
def test_a_task_is_one_line_and_two_on_a_phone(
    browser: Browser, bridge: Live, service: Service, width: int, height: int
) -> None:
    with person(browser, bridge.url, width=width) as ann:
        for path in ("/ui/trees", "/ui/jobs"):
            tab = ann.enter(service, path)
            heights = tab.evaluate(HEIGHTS)
            assert len(heights) >= 3
            assert max(heights) <= height, (path, heights)


def test_work_is_merged_in_two_clicks_and_the_list_says_so(browser: Browser, bridge: Live, service: Service) -> None:
    with person(browser, bridge.url) as ann:
        tab = ann.enter(service, "/ui/trees")
        tab.locator(f"#line-{seeds.ROOT} > summary").click()
        pictures(tab, "tasks, one unfolded")
        tab.get_by_role("button", name="Merge into my branch").click()
        until_shown(tab, "● merged")
        assert tab.get_by_role("button", name="Merge into my branch").count() == 0


def test_the_whole_line_leads_to_its_task_and_the_search_is_a_key_away(
    browser: Browser, bridge: Live, service: Service
) -> None:
    with person(browser, bridge.url) as ann:
        tab = ann.enter(service, "/ui/trees")
        tab.keyboard.press("/")
        tab.keyboard.type("state:running")
        tab.keyboard.press("Enter")
        tab.get_by_role("link", name="state: running").wait_for()
        assert tab.locator(".line[data-item]").count() == 1
        tab.locator(".line[data-item] .when").click(force=True)  # the link covers the line
        tab.wait_for_url("**/ui/trees/job-00000000000b")
        tab.keyboard.press("g")
        tab.keyboard.press("j")
        tab.wait_for_url("**/ui/jobs")


def test_the_longest_state_is_not_cut(browser: Browser, bridge: Live, service: Service) -> None:
    cut = "[...document.querySelectorAll('.line .is')].filter((box) => box.scrollWidth > box.clientWidth).length"
    for width in (900, 1280):
        with person(browser, bridge.url, width=width) as ann:
            tab = ann.enter(service, "/ui/trees")
            until_shown(tab, "ready to merge")
            assert tab.evaluate(cut) == 0, width
