"""The frame in a real browser: live updates, typed text, streams, keys (rulings M5, M8)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from jinja2 import ChoiceLoader, DictLoader
from playwright.sync_api import Browser, Route
from playwright.sync_api import Page as Tab

from bridge.http.dashboard import app
from bridge.http.dashboard.frame import render
from bridge.http.dashboard.frame.live import Live as Streams
from bridge.http.dashboard.frame.page import Done, FormAction, PageRequest, PageView, SubmittedForm, success
from bridge.http.dashboard.pages import ACTIONS, PAGES
from bridge.machine import token
from bridge.operations.service import Service
from tests.bridge.conftest import Live
from tests.e2e.browser import Person, needs_browser, person, until_shown
from tests.waiting import wait_for
from workflows.model.errors import RefusedError

pytestmark = [pytest.mark.ruling("M5", "M8"), pytest.mark.long, needs_browser]

PROBE = """
{% from "_parts.html" import form_fields, gone_parts, kept, stays %}
{{ gone_parts(gone) }}
<h1 data-waiting="{{ stage.items|length }}">Probe {{ stage.number }}</h1>
{% for item in stage.items %}
<article class="card" data-item id="item-{{ item }}"><h2>{{ item }}</h2><p>{{ stage.number }}</p>
<details id="more-{{ item }}"><summary>More</summary><p>{{ stage.number }}</p></details>
<form {{ stays("/ui/probe/answer") }}>{{ form_fields(session, here, "answer-" ~ item) }}
<input type="hidden" name="number" value="{{ stage.number }}">
<label for="text-{{ item }}">Answer</label>
<textarea id="text-{{ item }}" name="text">{{ kept(typed, "answer-" ~ item, "text") }}</textarea>
<label><input type="checkbox" id="tick-{{ item }}" name="tick"> tick</label>
<button id="send-{{ item }}">Answer {{ item }}</button></form></article>
{% endfor %}
"""


@dataclass
class Stage:
    """The content of the probe page, changed by the tests, and the forms it received."""

    number: int = 1
    items: tuple[str, ...] = ("one", "two", "three")
    sent: list[str] = field(default_factory=list)
    fails: Exception | None = None
    served: list[Streams] = field(default_factory=list)

    def streams(self) -> int:
        """The number of streams the bridge serves."""
        return sum(each.watch.lookers for each in self.served)

    def look(self, service: Service, asked: PageRequest) -> Mapping[str, object]:
        if self.fails is not None:
            raise self.fails
        return {"title": "Probe", "stage": self}

    async def answer(self, service: Service, form: SubmittedForm) -> Done:
        if form.number("number") != self.number:
            raise RefusedError(f"meanwhile it is {self.number}")
        self.sent.append(form.text("text"))
        return success("It is said")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr(app, "PAGES", (*PAGES, PageView("/probe", "probe.html", made.look, fresh_seconds=0.2)))
    monkeypatch.setattr(app, "ACTIONS", (*ACTIONS, FormAction("/probe/answer", made.answer)))

    def streams(*given: Any) -> Streams:
        made.served.append(Streams(*given))
        return made.served[-1]

    monkeypatch.setattr(app, "Live", streams)
    templates = render.environment().loader
    assert templates is not None
    probe = ChoiceLoader([templates, DictLoader({"probe.html": PROBE})])
    monkeypatch.setattr(render.environment(), "loader", probe)
    return made


@pytest.fixture
def bridge(service: Service, stage: Stage, listening: Callable[[Service], Live]) -> Live:
    return listening(service)


@pytest.fixture
def ann(browser: Browser, bridge: Live) -> Iterator[Person]:
    with person(browser, bridge.url) as someone:
        yield someone


@pytest.fixture
def tab(ann: Person, service: Service) -> Tab:
    """Open the page with live updates."""
    return ann.enter(service, "/ui/probe")


def test_a_change_reaches_an_open_page(tab: Tab, stage: Stage) -> None:
    stage.number = 2
    until_shown(tab, "Probe 2")
    assert tab.title() == "(3) Probe"
    assert tab.inner_text("#badge") == "3"


def test_a_half_typed_answer_keeps_text_focus_and_caret(tab: Tab, stage: Stage) -> None:
    area = tab.locator("#text-two")
    area.click()
    area.press_sequentially("not whole")
    for _ in range(5):
        area.press("ArrowLeft")
    tab.check("#tick-one")
    tab.fill("#text-one", "other")
    area.focus()
    stage.items, stage.number = ("zero", "one", "two", "four"), 2
    until_shown(tab, "Probe 2")
    area.press_sequentially("yet ")
    assert area.input_value() == "not yet whole"
    assert tab.input_value("#text-one") == "other"
    assert tab.is_checked("#tick-one")
    stage.number = 3
    until_shown(tab, "Probe 3")
    assert area.input_value() == "not yet whole"
    assert tab.evaluate("document.activeElement.id") == "text-two"
    assert tab.evaluate("document.activeElement.selectionStart") == len("not yet ")


def test_another_form_s_answer_leaves_what_is_typed(tab: Tab, stage: Stage) -> None:
    tab.fill("#text-two", "half")
    tab.fill("#text-one", "whole")
    tab.check("#tick-three")
    tab.click("#send-one")
    until_shown(tab, "It is said")
    assert stage.sent == ["whole"]
    assert tab.input_value("#text-two") == "half"
    assert tab.is_checked("#tick-three")
    assert tab.input_value("#text-one") == "", "what was sent is not there to be sent again"


def test_what_was_typed_for_an_item_that_is_gone_is_kept_and_its_letters_are_no_keys(tab: Tab, stage: Stage) -> None:
    tab.fill("#text-three", "for three")
    tab.locator("#text-one").press_sequentially("a")
    stage.items, stage.number = ("two",), 2
    until_shown(tab, "waits for nobody any more")
    kept = tab.get_by_label("What you typed")
    assert kept.evaluate_all("areas => areas.map(area => area.value).sort()") == ["a", "for three"]
    tab.keyboard.press("g")
    tab.keyboard.press("a")
    assert tab.url.endswith("/ui/probe")
    assert "aga" in kept.evaluate_all("areas => areas.map(area => area.value)")


def test_what_was_sent_is_not_kept(tab: Tab, stage: Stage) -> None:
    """The update that removes the item may arrive before the answer to the form."""
    tab.fill("#text-one", "whole")
    waiting: list[Route] = []
    tab.route("**/ui/probe/answer", lambda route: waiting.append(route))
    tab.click("#send-one")
    stage.items = ("two",)
    tab.locator("#item-one").wait_for(state="detached")
    assert tab.get_by_label("What you typed").count() == 0
    waiting[0].continue_()
    until_shown(tab, "It is said")


def test_a_button_waits_and_the_outcome_stands_beside_it_without_moving_it(tab: Tab, stage: Stage) -> None:
    waiting: list[Route] = []
    tab.route("**/ui/probe/answer", lambda route: waiting.append(route))
    button = tab.locator("#send-two")
    button.click()
    assert button.get_attribute("aria-busy") == "true"
    place = button.bounding_box()
    waiting[0].continue_()
    until_shown(tab, "It is said")
    assert tab.locator("#item-two form #notes").inner_text() == "It is said"
    assert (button.bounding_box(), button.get_attribute("aria-busy")) == (place, None)
    assert tab.evaluate("document.activeElement.id") == "send-two"
    for stage.number in (2, 3):
        until_shown(tab, f"Probe {stage.number}")
    assert tab.locator("#item-two form #notes").inner_text() == "It is said", "it outlives updates"
    stage.items = ("one", "three")
    tab.locator("#item-two").wait_for(state="detached")
    assert tab.locator("#notes + #item-three").count() == 1, "the form is gone, its place is not"


@pytest.mark.parametrize("answered", [True, False])
def test_what_is_refused_at_the_end_of_a_long_page_is_seen(ann: Person, tab: Tab, stage: Stage, answered: bool) -> None:
    stage.items, stage.number = tuple(f"item{number}" for number in range(12)), 2
    until_shown(tab, "Probe 2")
    if not answered:
        tab.route("**/ui/probe/answer", lambda route: route.abort())
    tab.evaluate("document.querySelector('#item-item11 [name=number]').value = 0")
    tab.click("#send-item11")
    tab.locator("#notes .no").wait_for()
    wait_for(lambda: tab.evaluate("document.querySelector('#notes .no').getBoundingClientRect().top") >= 48)
    for fault in ("409", "ERR_FAILED", "Failed to fetch"):
        ann.forgive(fault)


def test_details_stay_open_and_an_item_stays_chosen(tab: Tab, stage: Stage) -> None:
    tab.click("#more-two summary")
    tab.locator("body").press("Escape")
    tab.evaluate("document.activeElement.blur()")
    for _ in range(3):
        tab.keyboard.press("j")
    assert tab.evaluate("document.activeElement.id") == "item-three"
    for stage.number in (2, 3):
        until_shown(tab, f"Probe {stage.number}")
        assert tab.locator("#more-two").get_attribute("open") is not None
        assert tab.evaluate("document.activeElement.id") == "item-three"
    tab.keyboard.press("k")
    assert tab.evaluate("document.activeElement.id") == "item-two"


def test_a_page_out_of_date_is_told_so_and_the_text_is_still_there(ann: Person, tab: Tab, stage: Stage) -> None:
    tab.fill("#text-one", "an answer")
    tab.route("**/ui/live/**", lambda route: route.abort())
    tab.evaluate("document.querySelector('#item-one [name=number]').value = 0")
    tab.click("#send-one")
    until_shown(tab, "meanwhile it is 1")
    assert tab.input_value("#text-one") == "an answer"
    tab.click("#send-one")
    until_shown(tab, "It is said")
    assert stage.sent == ["an answer"]
    ann.forgive("409")
    ann.forgive("ERR_FAILED")


def test_forms_that_were_sent_leave_one_stream(tab: Tab, stage: Stage) -> None:
    for number in range(2, 6):
        tab.click("#send-one")
        wait_for(lambda: len(stage.sent) == stage.number)
        stage.number = number
        until_shown(tab, f"Probe {number}")
    assert stage.streams() == 1


def test_ten_tabs_can_be_looked_at(ann: Person, tab: Tab, stage: Stage) -> None:
    """A browser has six connections to a host. Hidden tabs hold none, except one that shows the number of waiting
    items.
    """
    tabs = [tab]
    for _ in range(9):
        hide(tabs[-1])
        tabs.append(ann.open("/ui/probe"))
    wait_for(lambda: stage.streams() == 2, stage.streams)
    stage.number = 2
    until_shown(tabs[-1], "Probe 2")
    hide(tabs[-1])
    hide(tabs[4], hidden=False)
    until_shown(tabs[4], "Probe 2")
    wait_for(lambda: stage.streams() == 2, stage.streams)


def test_a_tab_that_was_opened_behind_another_holds_no_stream(ann: Person, tab: Tab, stage: Stage) -> None:
    ann.context.add_init_script(HIDDEN)
    hidden = ann.open("/ui/probe")
    stage.number = 2
    until_shown(tab, "Probe 2")
    assert stage.streams() == 1
    assert "Probe 1" in hidden.inner_text("body")
    hide(hidden, hidden=False)
    until_shown(hidden, "Probe 2")


def test_a_hidden_tab_says_how_much_waits(tab: Tab, stage: Stage, service: Service) -> None:
    until_shown(tab, "Probe 1")
    hide(tab)
    stage.items = ("one",)
    wait_for(lambda: tab.title() == "(1) Probe")


def test_a_page_that_cannot_be_made_any_more_says_why_and_goes_on(tab: Tab, stage: Stage) -> None:
    tab.fill("#text-one", "half")
    stage.fails = RefusedError("the task is gone")
    until_shown(tab, "the task is gone")
    stage.fails = ZeroDivisionError("odd")
    until_shown(tab, "internal error")
    stage.fails, stage.number = None, 2
    until_shown(tab, "Probe 2")
    assert "fault" not in tab.inner_text("body")
    assert tab.input_value("#text-one") == "half"


def test_a_session_that_is_over_is_said_and_what_was_typed_stays(
    ann: Person, tab: Tab, stage: Stage, service: Service
) -> None:
    tab.fill("#text-one", "half")
    token.rotate(service.home)
    until_shown(tab, "This session is over")
    tab.click("#send-one")
    until_shown(tab, "nothing was done")
    assert stage.sent == []
    assert tab.input_value("#text-one") == "half"
    ann.forgive("400")
    ann.forgive("401")


def test_a_form_that_reaches_nobody_is_said_and_what_was_typed_stays(ann: Person, tab: Tab, stage: Stage) -> None:
    tab.fill("#text-one", "half")
    tab.route("**/ui/probe/answer", lambda route: route.abort())
    tab.click("#send-one")
    until_shown(tab, "The bridge did not answer")
    assert tab.input_value("#text-one") == "half"
    ann.forgive("ERR_FAILED")
    ann.forgive("Failed to fetch")


def test_keys(ann: Person, tab: Tab, stage: Stage) -> None:
    tab.keyboard.press("?")
    until_shown(tab, "Next item")
    assert "Pipelines" in tab.inner_text("#keys")
    tab.keyboard.press("Escape")
    tab.fill("#text-one", "")
    tab.locator("#text-one").press_sequentially("gaj?")
    assert tab.input_value("#text-one") == "gaj?"
    tab.locator("#tick-two").focus()
    tab.keyboard.press("j")
    assert tab.evaluate("document.activeElement.id") == "item-three"
    tab.keyboard.press("g")
    tab.keyboard.press("a")
    tab.wait_for_url("**/ui/")


def test_nothing_moves_for_who_wants_no_motion(browser: Browser, bridge: Live, service: Service, stage: Stage) -> None:
    moving = "getComputedStyle(document.querySelector('.probe')).animationName"
    add = "document.querySelector('h1').innerHTML = '<b class=running><i class=probe aria-hidden=true>x</i></b>'"
    names = []
    for still in (True, False):
        with person(browser, bridge.url, still=still) as someone:
            tab = someone.enter(service, "/ui/probe")
            tab.evaluate(add)
            names.append(tab.evaluate(moving))
    assert names == ["none", "breathe"]


HIDDEN = """
window.isHidden = true;
Object.defineProperty(document, "hidden", { get: () => window.isHidden, configurable: true });
"""


def hide(tab: Tab, *, hidden: bool = True) -> None:
    """Hide a tab. A headless browser shows all tabs, so the page's visibility is set by script."""
    tab.evaluate(
        HIDDEN + f"window.isHidden = {str(hidden).lower()}; void document.dispatchEvent(new Event('visibilitychange'))"
    )
