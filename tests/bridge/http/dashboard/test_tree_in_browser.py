"""A tree's page in a real browser: nothing moves on a click or an update, and everything fits (rulings M3, M5, M8)."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.dashboard import planted
from tests.bridge.http.dashboard.planted import ROOT, leg
from tests.e2e.browser import SCHEMES, axe, needs_browser, never_loaded_again, person, pictures, tree_page, until_shown
from tests.waiting import wait_for

pytestmark = [pytest.mark.ruling("M3", "M5", "M8"), needs_browser]

BOXES = ".dag svg a[href^='/ui/jobs/']"
PLACES = "(ids) => Object.fromEntries(ids.map((id) => [id, document.getElementById(id).getBoundingClientRect().top]))"
"""Where elements are in the window."""


@pytest.fixture
def bridge(service: Service, listening: Callable[[Service], Live]) -> Live:
    return listening(service)


@pytest.fixture
def tab(browser: Browser, bridge: Live, service: Service) -> Iterator[Page]:
    """Open the page of a tree of 64 jobs that runs."""
    planted.played(service, 64, 600, live=True)
    with person(browser, bridge.url) as ann:
        tab = tree_page(service, ann, ROOT)
        until_shown(tab, "No worker runs")  # the last banner has come
        yield tab


def places(tab: Page, *names: str) -> dict[str, float]:
    return dict(tab.evaluate(PLACES, list(names)))


def goes_on(service: Service, tab: Page) -> None:
    """End a job that runs, and wait until the page shows it."""
    ended = leg(61, "docs-61", parent_job_id=f"{ROOT}.52", summary="It is over.", revision=1000)
    seeds.write(service, ended)
    wait_for(lambda: "It is over." in tab.inner_text(".outline"))


def test_a_batch_unfolds_where_it_is_and_stays_so_through_updates(tab: Page, service: Service) -> None:
    tab.locator("#graph").scroll_into_view_if_needed()
    before, few = places(tab, "jobs", "timeline", "graph"), tab.locator(BOXES).count()
    tab.locator(".dag a.folded").first.click()
    wait_for(lambda: tab.locator(BOXES).count() == few + 12)
    assert places(tab, "jobs", "timeline", "graph") == before
    goes_on(service, tab)
    assert tab.locator(BOXES).count() == few + 12
    assert tab.url.endswith(f"/ui/trees/{ROOT}?unfold=0"), "so a reload shows it too"
    tab.get_by_role("link", name="Fold batch 1").click()
    wait_for(lambda: tab.locator(BOXES).count() == few)
    assert places(tab, "jobs", "timeline", "graph") == before
    assert never_loaded_again(tab)


def test_idle_times_are_shown_in_full_where_they_are(tab: Page, service: Service) -> None:
    before = places(tab, "timeline")
    tab.get_by_role("link", name="Show idle times in full").click()
    tab.get_by_role("link", name="Cut idle times short").wait_for()
    assert places(tab, "timeline") == before
    goes_on(service, tab)
    assert tab.get_by_role("link", name="Cut idle times short").is_visible()
    assert never_loaded_again(tab)


def test_what_was_unfolded_in_the_outline_stays_so_and_what_was_open_is_not_folded_away(
    tab: Page, service: Service
) -> None:
    tab.locator("#batch-0 > summary").focus()
    tab.keyboard.press("Enter")
    last = tab.locator("#batch-52")
    assert last.evaluate("(each) => each.open")
    before = places(tab, "batch-0", "batch-13")
    goes_on(service, tab)
    assert tab.locator("#batch-0").evaluate("(each) => each.open")
    over = [leg(number, f"leg-{number}", parent_job_id=f"{ROOT}.52", revision=1000) for number in range(59, 63)]
    seeds.write(service, *over, leg(63, "x", delegation_id=None, parent_job_id=f"{ROOT}.52", summary="On it."))
    wait_for(lambda: "On it." in tab.inner_text(".outline"))
    assert last.evaluate("(each) => each.open"), "the batch has finished while somebody may read it"
    assert places(tab, "batch-0", "batch-13") == before


def test_a_graph_scrolls_in_its_own_box_until_it_is_made_to_fit(tab: Page, service: Service) -> None:
    tab.set_viewport_size({"width": 600, "height": 900})
    hidden = "(box) => box.scrollWidth - box.clientWidth"
    box = tab.locator(".dag")
    assert box.evaluate(hidden) > 300
    tab.get_by_label("Fit to the window").check()
    assert box.evaluate(hidden) == 0
    goes_on(service, tab)
    assert box.evaluate(hidden) == 0


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 8, 64, 200])
def test_every_size_fits_every_screen_and_is_for_everybody(
    browser: Browser, bridge: Live, service: Service, jobs: int
) -> None:
    planted.played(service, jobs, 3 if jobs < 10 else 5 * 86_400)
    for width in (360, 1280, 1920):
        for scheme in SCHEMES:
            with person(browser, bridge.url, width=width, scheme=scheme) as ann:
                tab = ann.enter(service, f"/ui/trees/{ROOT}?unfold=all")
                assert not tab.evaluate("document.scrollingElement.scrollWidth > innerWidth"), (width, scheme)
                assert axe(tab) == [], (width, scheme)
                if (width, scheme) == (1280, "light"):
                    pictures(tab, f"tree-of-{jobs}")
