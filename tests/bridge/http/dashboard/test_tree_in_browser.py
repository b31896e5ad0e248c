"""A tree's page in a real browser: nothing moves on a click or an update, and everything fits (rulings M3, M5, M8)."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.dashboard import planted
from tests.bridge.http.dashboard.planted import ROOT, leg
from tests.e2e.browser import SCHEMES, axe, needs_browser, never_loaded_again, person, pictures, tree_page, until_shown
from tests.waiting import wait_for
from workflows.model.rows import QuestionRecord

pytestmark = [pytest.mark.ruling("M3", "M5", "M8"), needs_browser]

VIEWS = ("", "/timeline", "/changes", "/log")
BOXES = ".dag svg a[href^='/ui/jobs/']"
ENDED = ("It is over.", "ran 40 s")
"""What the overview, and the timeline, show of the job that `goes_on` ends."""
BOXES_THAT_SCROLL = """[...document.querySelectorAll("main *")].filter((e) =>
  e.scrollHeight > e.clientHeight + 1 && ["auto", "scroll"].includes(getComputedStyle(e).overflowY)
).map((e) => e.className)"""
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


@pytest.fixture
def timeline(browser: Browser, bridge: Live, service: Service) -> Iterator[Page]:
    """Open the timeline of that tree."""
    planted.played(service, 64, 600, live=True)
    with person(browser, bridge.url) as ann:
        tab = tree_page(service, ann, f"{ROOT}/timeline")
        until_shown(tab, "No worker runs")
        yield tab


def places(tab: Page, *names: str) -> dict[str, float]:
    return dict(tab.evaluate(PLACES, list(names)))


def goes_on(service: Service, tab: Page) -> None:
    """End a job that runs, and wait until the page shows it."""
    ended = leg(61, "docs-61", parent_job_id=f"{ROOT}.52", summary="It is over.", revision=1000)
    seeds.write(service, ended)
    wait_for(lambda: any(words in (tab.text_content("main") or "") for words in ENDED))


def test_a_batch_unfolds_where_it_is_and_stays_so_through_updates(timeline: Page, service: Service) -> None:
    tab = timeline
    tab.locator("#graph > summary").click()
    tab.locator("#graph").scroll_into_view_if_needed()
    before, few = places(tab, "timeline", "graph"), tab.locator(BOXES).count()
    tab.locator(".dag a.folded").first.click()
    wait_for(lambda: tab.locator(BOXES).count() == few + 12)
    assert places(tab, "timeline", "graph") == before
    goes_on(service, tab)
    assert tab.locator(BOXES).count() == few + 12
    assert tab.url.endswith(f"/ui/trees/{ROOT}/timeline?unfold=0"), "so a reload shows it too"
    tab.get_by_role("link", name="Fold batch 1").click()
    wait_for(lambda: tab.locator(BOXES).count() == few)
    assert places(tab, "timeline", "graph") == before
    assert never_loaded_again(tab)


def test_nothing_lies_over_the_bars(timeline: Page) -> None:
    over = "getComputedStyle(document.querySelector('.lanes > svg')).backgroundColor"
    assert timeline.evaluate(over) == "rgba(0, 0, 0, 0)"


def test_idle_times_are_shown_in_full_where_they_are(timeline: Page, service: Service) -> None:
    tab = timeline
    before = places(tab, "timeline")
    tab.get_by_role("link", name="Show waits at full length").click()
    tab.get_by_role("link", name="Shorten long waits").wait_for()
    assert places(tab, "timeline") == before
    goes_on(service, tab)
    assert tab.get_by_role("link", name="Shorten long waits").is_visible()
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


def test_a_graph_scrolls_in_its_own_box_until_it_is_made_to_fit(timeline: Page, service: Service) -> None:
    tab = timeline
    tab.locator("#graph > summary").click()
    tab.set_viewport_size({"width": 600, "height": 900})
    hidden = "(box) => box.scrollWidth - box.clientWidth"
    box = tab.locator(".dag")
    assert box.evaluate(hidden) > 300
    tab.get_by_label("Fit to the window").check()
    assert box.evaluate(hidden) == 0
    goes_on(service, tab)
    assert box.evaluate(hidden) == 0


@pytest.mark.parametrize("live", [False, True])
def test_the_overview_of_60_jobs_is_three_screens_of_a_phone_at_most(
    browser: Browser, bridge: Live, service: Service, live: bool
) -> None:
    planted.played(service, 60, 600, live=live)
    with person(browser, bridge.url, width=360, touch=True) as ann:
        tab = tree_page(service, ann, ROOT)
        until_shown(tab, "No worker runs")
        assert tab.evaluate("document.documentElement.scrollHeight") <= 3 * 800
        assert tab.evaluate(BOXES_THAT_SCROLL) == []
        assert len(ann.context.request.get(tab.url).body()) < 100_000


def test_the_views_are_reached_by_keys_links_and_the_back_button(tab: Page) -> None:
    tab.keyboard.press("2")
    tab.get_by_role("heading", name="Timeline").wait_for()
    assert tab.url.endswith(f"/ui/trees/{ROOT}/timeline")
    tab.keyboard.press("4")
    tab.get_by_role("heading", name="Transcripts").wait_for()
    tab.get_by_role("link", name="Overview").click()
    tab.get_by_role("heading", name="Jobs").wait_for()
    tab.go_back()
    tab.get_by_role("heading", name="Transcripts").wait_for()
    tab.locator("main .log a").first.focus()
    tab.keyboard.press("1")
    tab.get_by_role("heading", name="Jobs").wait_for()


def test_the_log_of_64_jobs_is_four_screens_of_a_phone_at_most(
    browser: Browser, bridge: Live, service: Service
) -> None:
    planted.played(service, 64, 600)
    with person(browser, bridge.url, width=360, touch=True) as ann:
        tab = tree_page(service, ann, f"{ROOT}/log")
        until_shown(tab, "No worker runs")
        assert tab.evaluate("document.documentElement.scrollHeight") <= 4 * 800
        tab.get_by_role("link", name="Show all 207").click()
        wait_for(lambda: tab.locator(".events li").count() == 207)


def test_the_changes_of_12_branches_are_three_screens_of_a_phone_at_most(
    browser: Browser, bridge: Live, service: Service, tmp_path: Path
) -> None:
    planted.writers(service, tmp_path, {f"part-{number}": (f"file-{number}.py", "a\n") for number in range(12)})
    with person(browser, bridge.url, width=360, touch=True) as ann:
        tab = tree_page(service, ann, f"{ROOT}/changes")
        until_shown(tab, "No worker runs")
        pictures(tab, "changes-of-12")
        assert tab.evaluate("document.documentElement.scrollHeight") <= 3 * 800


def test_a_branch_is_checked_out_by_what_its_button_copies(
    browser: Browser, bridge: Live, service: Service, tmp_path: Path
) -> None:
    planted.writers(service, tmp_path, {"a": ("a.py", "a\n")})
    with person(browser, bridge.url) as ann:
        ann.context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab = tree_page(service, ann, f"{ROOT}/changes")
        tab.get_by_role("button", name="Copy: git switch").click()
        wait_for(lambda: tab.evaluate("navigator.clipboard.readText()") == f"git switch service/{ROOT}.1")


@pytest.mark.parametrize("width", [360, 1280, 1920])
def test_every_page_begins_below_the_mark_in_the_bar(
    browser: Browser, bridge: Live, service: Service, width: int
) -> None:
    planted.played(service, 8, 600)
    left = "(of) => document.querySelector(of).getBoundingClientRect().left"
    with person(browser, bridge.url, width=width) as ann:
        ann.enter(service).close()
        for path in ("/ui/", "/ui/trees", "/ui/settings", *(f"/ui/trees/{ROOT}{view}" for view in VIEWS)):
            tab = ann.open(path)
            assert tab.evaluate(left, "main") == tab.evaluate(left, ".brand"), path
            tab.close()


@pytest.mark.usefixtures("kept")
@pytest.mark.ruling("M1")
def test_a_question_is_answered_two_clicks_from_the_badge(browser: Browser, bridge: Live, service: Service) -> None:
    store = QuestionRecord(id="store", prompt="Which store?", choices=("redis", "memory"), job_id=ROOT)
    seeds.paused(service, questions=(store,), expires_at=time.time() + 9000)
    with person(browser, bridge.url) as ann:
        tab = ann.enter(service, "/ui/spend")
        tab.locator("#badge").click()
        tab.get_by_role("button", name="Answer: redis").click()
        until_shown(tab, "it is kept, and takes effect when one does")
        tab = ann.open(f"/ui/trees/{ROOT}")
        tab.get_by_role("button", name="Answer: memory").click()
        until_shown(tab, "it is kept, and takes effect when one does")
        assert tab.url.endswith(f"/ui/trees/{ROOT}"), "on the page of the tree it is one click"


@pytest.mark.ruling("O6")
def test_a_tree_is_merged_two_clicks_from_the_list(
    browser: Browser, bridge: Live, service: Service, tmp_path: Path
) -> None:
    repo = planted.writers(service, tmp_path, {"a": ("a.py", "a\n"), "b": ("b.py", "b\n")})
    with person(browser, bridge.url) as ann:
        tab = ann.enter(service, "/ui/spend")
        tab.locator(".top nav a[href='/ui/trees']").click()
        tab.locator(f"main a[href='/ui/trees/{ROOT}']").click()
        tab.get_by_role("button", name="Merge 2 parts into main").click()
        until_shown(tab, "2 parts merged into main")
        assert (repo / "b.py").exists()
        pictures(tab, "merged")


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 8, 64, 200])
def test_every_size_fits_every_screen_and_is_for_everybody(
    browser: Browser, bridge: Live, service: Service, jobs: int
) -> None:
    planted.played(service, jobs, 3 if jobs < 10 else 5 * 86_400)
    for width in (360, 1280, 1920):
        for scheme in SCHEMES:
            with person(browser, bridge.url, width=width, scheme=scheme) as ann:
                ann.enter(service).close()
                for view in ("", "?unfold=earlier,0", "/timeline?unfold=all", "/changes", "/log"):
                    tab = ann.open(f"/ui/trees/{ROOT}{view}")
                    assert not tab.evaluate("document.scrollingElement.scrollWidth > innerWidth"), (width, scheme, view)
                    assert tab.evaluate(BOXES_THAT_SCROLL) == [], (width, scheme, view)
                    assert axe(tab) == [], (width, scheme, view)
                    if (width, scheme) == (1280, "light"):
                        pictures(tab, f"tree-of-{jobs}{view}")
                    tab.close()
