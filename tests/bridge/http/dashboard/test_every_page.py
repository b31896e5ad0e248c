"""Every page in a real browser, over rows full of hostile text: nothing runs, nothing overflows (rulings M6, M8)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from activities.store import agents
from bridge.operations import memory, reviews
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.e2e.browser import axe, needs_browser, person, picture, started
from workflows.model.rows import QuestionRecord
from workflows.model.states import JobState, TaskState
from workflows.model.workers import Worker

pytestmark = [pytest.mark.ruling("M6", "M8"), pytest.mark.long, needs_browser]

HOSTILE = (
    '<script>window.pwned=1</script>"><img src=x onerror="window.pwned=2">{{ 7*7 }}{% raw %}'
    "'--><svg/onload=window.pwned=3>\x01\x1b[31m\u202egnp\u2066\u2028\u0085\ufeff<form action=//evil.test>"
    "\u05e9\u05dc\u05d5\u05dd " + "long" * 60
)
SEEN = "<script>window.pwned=1</script>"
"""How it begins, as text."""
LEG = f"{seeds.ROOT}.1"
PAGES = (  # every address of every subject
    "/ui/",
    "/ui/jobs",
    f"/ui/trees/{seeds.ROOT}",
    f"/ui/jobs/{LEG}",
    "/ui/jobs?q=%3Cscript%3Ewindow.pwned%3D4%3C/script%3E",
    "/ui/pipelines",
    "/ui/pipelines/nightly",
    "/ui/runs",
    "/ui/agents",
    "/ui/doctor",
    "/ui/memory",
    "/ui/reviews",
    "/ui/spend",
    "/ui/settings",
    "/ui/%3Cscript%3Ewindow.pwned%3D5%3C/script%3E",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as program:
        yield program


@pytest.fixture
def bridge(service: Service, listening: Callable[[Service], Live]) -> Live:
    sow(service)
    return listening(service)


def sow(service: Service) -> None:
    """A tree, a question, a conflict and a pipeline, hostile in every text."""
    question: dict[str, Any] = {"id": "color", "prompt": HOSTILE, "job_id": seeds.ROOT, "choices": (HOSTILE, "blue")}
    seeds.write(
        service,
        seeds.task(title=HOSTILE, state=TaskState.AWAITING_HUMAN, reason=HOSTILE),
        seeds.job(state=JobState.SUCCEEDED, agent="scout", summary=HOSTILE, reason=HOSTILE),
        seeds.job(
            LEG, state=JobState.FAILED, agent="dev", summary=HOSTILE, reason=HOSTILE, branch=HOSTILE, model=HOSTILE
        ),
        seeds.round_(questions=(QuestionRecord.model_validate(question),), expires_at=9e9, reason=HOSTILE),
        seeds.event(1, message=HOSTILE),
        seeds.event(2, LEG, message=HOSTILE, kind="recorded"),
    )
    seeds.register(service)
    seeds.repo(service)
    agents.add(service.store, Worker(name="scout", runtime="shell", command=(HOSTILE,)), ("acme/shop",))
    memory.propose(service, memory.Proposal(seeds.ROOT, "a key", HOSTILE[:500].replace("\x01", "").replace("\x1b", "")))
    review = {"kind": "review", "head_sha": "abcdef0123", "workflow": SEEN, "repo": None}
    reviews.open_review(service, pull_request=7, **review)  # type: ignore[arg-type]


def test_nothing_that_was_written_runs_or_is_hidden(browser: Browser, bridge: Live, service: Service) -> None:
    with person(browser, bridge.url) as ann:
        tab = ann.enter(service)
        shown = ""
        for path in PAGES:
            tab.goto(f"{bridge.url}{path}")
            shown += tab.inner_text("main")
            assert tab.evaluate("window.pwned") is None, path
            assert tab.locator("main :is(script, img, svg[onload], [onerror], [style])").count() == 0, path
            assert not [c for c in tab.inner_text("main") if c in "\x01\x1b\u202e\u2066\u2028\ufeff"], path
        ann.forgive("404")
    assert shown.count(SEEN) > 8
    assert "[U+202E]" in shown


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_is_wider_than_the_screen(browser: Browser, bridge: Live, service: Service, width: int) -> None:
    wide = []
    with person(browser, bridge.url, width=width) as ann:
        tab = ann.enter(service)
        for path in PAGES:
            tab.goto(f"{bridge.url}{path}")
            if tab.evaluate("document.scrollingElement.scrollWidth > innerWidth"):
                wide.append((path, tab.evaluate(WIDEST)))
        ann.forgive("404")
    assert wide == [], "\n".join(map(str, wide))


def test_scripts_and_forms_can_do_their_work(browser: Browser, bridge: Live, service: Service) -> None:
    """A field named as a property of forms hides it; what has no id of its own is lost when the page changes."""
    odd = []
    with person(browser, bridge.url) as ann:
        tab = ann.enter(service)
        for path in PAGES:
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
    found = []
    with person(browser, bridge.url, width=width, scheme=scheme) as ann:
        tab = ann.enter(service)
        for path in PAGES:
            tab.goto(f"{bridge.url}{path}")
            picture(tab, f"{path}-{width}-{scheme}")
            found += [f"{path}: {each}" for each in axe(tab)]
        ann.forgive("404")
    assert found == [], "\n".join(found)


WIDEST = """[...document.querySelectorAll("body *")].filter((e) =>
  e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".wide, .dag, nav")
).slice(0, 4).map((e) => `${e.tagName}.${e.className} ${e.textContent.slice(0, 40)}`)"""
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
