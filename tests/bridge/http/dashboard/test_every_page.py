"""Every page in a real browser, over rows full of hostile text: nothing runs, nothing overflows (rulings M6, M8)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from bridge.operations.service import Service
from tests.bridge.conftest import Live
from tests.bridge.http.dashboard.hostile import ADDRESSES, SEEN, UNSEEN, sow
from tests.e2e.browser import axe, needs_browser, person, picture

pytestmark = [pytest.mark.ruling("M6", "M8"), pytest.mark.long, needs_browser]


@pytest.fixture
def bridge(service: Service, listening: Callable[[Service], Live], tmp_path: Path) -> Live:
    sow(service, tmp_path)
    return listening(service)


def test_nothing_that_was_written_runs_or_is_hidden(browser: Browser, bridge: Live, service: Service) -> None:
    with person(browser, bridge.url) as ann:
        tab = ann.enter(service)
        shown = ""
        for path in ADDRESSES:
            tab.goto(f"{bridge.url}{path}")
            tab.evaluate(UNFOLD)
            here = tab.inner_text("main")
            shown += here
            assert tab.evaluate("window.pwned") is None, path
            assert tab.locator("main :is(script, img, svg[onload], [onerror], [style])").count() == 0, path
            assert not [letter for letter in here if letter in UNSEEN], path
        ann.forgive("404")
    assert shown.count(SEEN) > 8
    assert "\\u202e" in shown


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_the_screen(browser: Browser, bridge: Live, service: Service, width: int) -> None:
    wide = []
    with person(browser, bridge.url, width=width) as ann:
        tab = ann.enter(service)
        for path in ADDRESSES:
            tab.goto(f"{bridge.url}{path}")
            tab.evaluate(UNFOLD)
            if tab.evaluate("document.scrollingElement.scrollWidth > innerWidth"):
                wide.append((path, tab.evaluate(WIDEST)))
        ann.forgive("404")
    assert wide == [], "\n".join(map(str, wide))


def test_a_finger_meets_everything_that_is_pressed_on_a_phone(browser: Browser, bridge: Live, service: Service) -> None:
    small = []
    with person(browser, bridge.url, width=360, touch=True) as ann:
        tab = ann.enter(service)
        for path in ADDRESSES:
            tab.goto(f"{bridge.url}{path}")
            tab.evaluate(UNFOLD)
            small += [(path, each) for each in tab.evaluate(SMALL)]
        ann.forgive("404")
    assert small == [], "\n".join(map(str, small))


def test_scripts_and_forms_can_do_their_work(browser: Browser, bridge: Live, service: Service) -> None:
    """A field named like a form's property hides it; an element without an id loses its state when the page changes."""
    odd = []
    with person(browser, bridge.url) as ann:
        tab = ann.enter(service)
        for path in ADDRESSES:
            tab.goto(f"{bridge.url}{path}")
            odd += [(path, each) for each in tab.evaluate(ODD)]
        ann.forgive("404")
    assert odd == [], "\n".join(map(str, odd))


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_everybody_can_use_every_page(
    browser: Browser, bridge: Live, service: Service, scheme: Any, width: int
) -> None:
    faults = []
    with person(browser, bridge.url, width=width, scheme=scheme) as ann:
        tab = ann.enter(service)
        for path in ADDRESSES:
            tab.goto(f"{bridge.url}{path}")
            picture(tab, f"{path}-{width}-{scheme}")
            faults += [f"{path}: {each}" for each in axe(tab)]
        ann.forgive("404")
    assert faults == [], "\n".join(faults)


UNFOLD = "document.querySelectorAll('main details').forEach((each) => { each.open = true; })"
WIDEST = """[...document.querySelectorAll("body *")].filter((e) =>
  e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".wide, .dag, nav")
).slice(0, 4).map((e) => `${e.tagName}.${e.className} ${e.textContent.slice(0, 40)}`)"""
SMALL = """[...document.querySelectorAll("a, button, summary, input:not([type=hidden]), select, textarea")]
.filter((e) => {
  const inText = e.tagName === "A" && getComputedStyle(e).display === "inline";
  const pressed = /checkbox|radio/.test(e.type) && e.closest("label") || e;
  const counts = e.checkVisibility() && !inText && !e.closest(".skip, svg, .diff");
  return counts && pressed.getBoundingClientRect().height < 43.5;
}).map((e) => e.outerHTML.slice(0, 120))"""
"""Links within a text, and the numbers of lines, are as high as a line."""
ODD = """(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const hiding = (e) => e.name in HTMLFormElement.prototype || e.name === "form";
  const ids = all("[id]").map((e) => e.id);
  return [
    ...all("form[hx-post] [name]").filter(hiding).map((e) => `name ${e.name}`),
    ...all("main details:not([id])").map((e) => `details ${e.textContent.trim().slice(0, 40)}`),
    ...all("main :is(textarea, select, input:not([type=hidden])):not([id])").map((e) => e.outerHTML),
    ...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `twice ${id}`),
  ];
})()"""
