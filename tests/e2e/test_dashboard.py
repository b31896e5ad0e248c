"""A person at the dashboard of a real service, in a real browser (rulings M1, M2, M5, M8)."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bridge.machine import daemon_state
from tests.e2e.browser import (
    Person,
    needs_browser,
    never_loaded_again,
    pictures,
    tree_page,
    until_absent,
    until_shown,
    until_standing,
    until_state,
)
from tests.e2e.script import Script, leg, played, until_paused
from tests.waiting import wait_for

pytestmark = [pytest.mark.ruling("M1", "M2", "M5", "M8"), pytest.mark.long, needs_browser]

QUESTION: dict[str, Any] = {"id": "color", "prompt": "Which color?", "choices": ["red", "blue"]}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("dashboard"))


def asked(script: Script) -> str:
    """Return a tree that waits for an answer."""
    script.answers(none={"human_questions": [QUESTION]}, replan={"decision": "approved"})
    job = script.ask()
    until_paused(script, job)
    return job


def test_a_question_is_answered_while_the_list_changes(script: Script, ann: Person) -> None:
    tab = ann.enter(script.service.seen)
    first = asked(script)
    until_shown(tab, "Which color?")
    area = tab.locator("main textarea").first
    area.fill("")
    area.press_sequentially("blue")
    second = asked(script)
    wait_for(lambda: tab.locator("article").count() >= 2)
    assert area.input_value() == "blue"
    assert tab.evaluate("document.activeElement.tagName") == "TEXTAREA"
    area.locator("xpath=ancestor::form").get_by_role("button", name=re.compile("Answer")).first.click()
    until_shown(tab, "answer")
    script.until_over(first)
    script.service("resume", second, "answer", "red")
    script.until_over(second)
    tab.goto(f"{ann.base}/ui/trees/{first}")
    until_shown(tab, "blue")


def test_every_half_that_is_gone_is_said_and_the_page_comes_back_by_itself(script: Script, ann: Person) -> None:
    tab = ann.enter(script.service.seen)
    until_shown(tab, "Attention")
    os.kill(script.service.pid("bridge"), signal.SIGKILL)
    until_shown(tab, "The bridge does not answer")
    script.service.wait_for(script.service.is_well)
    wait_for(lambda: not tab.is_visible("#offline"))
    job = asked(script)
    until_shown(tab, "Which color?")
    script.service("resume", job, "answer", "red")
    script.until_over(job)
    server = script.service.pid("server")
    os.kill(server, signal.SIGSTOP)
    until_shown(tab, "Temporal does not answer")
    os.kill(server, signal.SIGCONT)
    wait_for(lambda: "Temporal does not answer" not in tab.inner_text("body"))
    script.service.kill("worker")
    wait_for(lambda: "No worker runs" not in tab.inner_text("body"))
    ann.forgive("ERR_CONNECTION_REFUSED")
    ann.forgive("ERR_INCOMPLETE_CHUNKED_ENCODING")
    ann.forgive("ERR_CONNECTION_RESET")


@pytest.mark.ruling("M4")
def test_a_task_is_started_on_the_page_by_keys_alone(script: Script, ann: Person) -> None:
    script.answers(none={"decision": "approved", "summary": "nothing is wrong"})
    tab = ann.enter(script.service.seen)
    tab.keyboard.press("g")
    tab.keyboard.press("n")
    tab.wait_for_url("**/ui/new")
    tab.keyboard.type("look at it, please")
    for field in ("repo", "agent", "action-1", "more", "base", "budget"):
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.closest('[id]').id") == field
        if field == "agent":
            tab.keyboard.type("lead")
        if field == "more":
            tab.keyboard.press("Enter")
    tab.keyboard.type("much")
    tab.keyboard.press("Enter")
    until_shown(tab, "'much' is not a number of dollars")
    pictures(tab, "new-fault")
    assert tab.evaluate("document.activeElement.id") == "budget", "where to go on"
    assert tab.input_value("#message") == "look at it, please"
    tab.keyboard.press("ControlOrMeta+a")
    tab.keyboard.type("5")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/ui/trees/**")
    until_standing(tab, "nothing is wrong")
    until_standing(tab, "done")
    ann.forgive("400")


@contextmanager
def gone(script: Script, member: str) -> Iterator[None]:
    """Kill a process with -9, and prevent its daemon from restarting it meanwhile."""
    service = script.service
    daemon, before = daemon_state.status(service.seen.home).pid, service.pid(member)
    assert daemon is not None
    os.kill(daemon, signal.SIGSTOP)
    try:
        os.kill(before, signal.SIGKILL)
        yield
    finally:
        os.kill(daemon, signal.SIGCONT)
    service.wait_for(lambda: service.pid(member) not in (0, before) and service.is_well())


@pytest.mark.long
@pytest.mark.ruling("M3")
def test_an_open_tree_says_which_part_is_gone_and_goes_on_by_itself(script: Script, ann: Person) -> None:
    names = ("bridge", "worker", "server", "last")
    chain = [leg(name, "ask", deps=list(before)) for name, before in zip(names, [(), *zip(names)], strict=False)]
    script.answers(none={"delegations": chain}, **{name: {"wait": f"go-{name}"} for name in names})
    job = script.ask()
    tab = tree_page(script.service.seen, ann, job)
    notices = {
        "bridge": "The bridge does not answer",
        "worker": "No worker runs on this machine",
        "server": "Temporal does not answer",
    }
    for number, (member, words) in enumerate(notices.items(), 1):
        until_state(tab, f"{job}.{number}", "running")
        with gone(script, member):
            until_shown(tab, words)
            pictures(tab, f"gone-{member}")
            (script.plans / f"go-{member}").touch()
        until_absent(tab, words)
        until_state(tab, f"{job}.{number}", "succeeded")
    (script.plans / "go-last").touch()
    until_standing(tab, "done")
    assert never_loaded_again(tab)
    for by_the_browser in ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"):
        ann.forgive(by_the_browser)
