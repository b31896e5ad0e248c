"""Pipelines, memory and the reference pages, in a real browser against a real service (rulings M4, M8)."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page as Tab

from bridge.operations.pipelines import runs as pipeline_runs
from bridge.operations.registry import memory
from bridge.operations.registry.memory import MemoryFilter
from tests.bridge import seeds
from tests.e2e.browser import Person, needs_browser, picture, until_shown
from tests.e2e.script import Script, played
from tests.waiting import wait_for
from workflows.model.states import JobState, TaskState

pytestmark = [pytest.mark.ruling("M4", "M8"), needs_browser, pytest.mark.long]

FILE = """\
name: nightly
repo: acme/shop
stages:
  - id: first
    kind: shell
    command: >-
      echo "begun for $SERVICE_PAYLOAD_TICKET: $SERVICE_PAYLOAD_NOTE";
      while [ ! -e $PLANS/go ]; do sleep 0.1; done; echo goes on;
      while [ ! -e $PLANS/end ]; do sleep 0.1; done; echo over
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("pages"))


def looked_at(tab: Tab, name: str) -> None:
    """Check that nothing is wider than the screen: on a phone, a laptop and a large screen, light and dark."""
    for width in (360, 1920, 1280):
        for scheme in ("dark", "light"):
            tab.set_viewport_size({"width": width, "height": 900})
            tab.emulate_media(color_scheme=scheme)
            assert not tab.evaluate("document.scrollingElement.scrollWidth > innerWidth"), (name, width)
            picture(tab, f"{name}-{width}-{scheme}")


def press(tab: Tab, words: str) -> None:
    tab.get_by_role("button", name=words).first.click()


def check_now(tab: Tab, words: str) -> None:
    """Repeat the check after the one that opening the page has begun, and wait for its end."""
    button = tab.get_by_role("button", name="Check now")
    button.wait_for(timeout=60_000)
    button.click()
    until_shown(tab, words)
    button.wait_for(timeout=60_000)


def runs(script: Script) -> list[str]:
    """Return the states of all runs, the newest first."""
    return [run.state.value for run in pipeline_runs.list_runs(script.service.seen, pipeline_runs.RunFilter()).runs]


def test_a_pipeline_is_started_watched_refused_and_cancelled(script: Script, ann: Person) -> None:
    (script.service.tmp / "nightly.yaml").write_text(FILE)
    script.service("pipeline", "add", "nightly.yaml")
    tab = ann.enter(script.service.seen, "/ui/pipelines")
    looked_at(tab, "pipelines")
    tab.get_by_role("link", name="nightly").click()
    assert tab.input_value("#key-1") == "ticket"
    tab.fill("#value-1", "T-1")
    tab.fill("#more", "note=a=b c")
    looked_at(tab, "pipeline")
    press(tab, "Run nightly")
    tab.wait_for_url("**/ui/runs/prun-*")
    until_shown(tab, "begun for T-1:")
    assert "note" in tab.inner_text("main")

    second = ann.open("/ui/pipelines/nightly")
    until_shown(second, "A run is active")
    second.fill("#value-1", "T-2")
    second.fill("#more", "note=<b>second</b>")
    with second.expect_response("**/ui/pipelines/nightly/run") as answer:
        press(second, "Run nightly")
    assert answer.value.status == 409
    until_shown(second, "already has an active run")
    assert (second.input_value("#value-1"), second.input_value("#more")) == ("T-2", "note=<b>second</b>")

    assert "goes on" not in tab.inner_text("main")
    (script.plans / "go").touch()
    until_shown(tab, "goes on")
    looked_at(tab, "run")
    tab.locator("summary", has_text="Cancel the run").click()
    press(tab, "Cancel the run")
    until_shown(tab, "The run is being ended")
    wait_for(lambda: runs(script) == ["cancelled"])
    until_shown(tab, "⊘ cancelled")
    assert tab.get_by_role("button", name="Cancel the run").count() == 0

    wait_for(lambda: "A run is active" not in second.inner_text("main"))
    assert (second.input_value("#value-1"), second.input_value("#more")) == ("T-2", "note=<b>second</b>")
    press(second, "Run nightly")
    second.wait_for_url("**/ui/runs/prun-*")
    (script.plans / "end").touch()
    until_shown(second, "● succeeded")
    until_shown(second, "<b>second</b>")
    assert runs(script) == ["succeeded", "cancelled"]
    second.goto(f"{ann.base}/ui/runs")
    looked_at(second, "runs")
    ann.forgive("409")


def test_what_a_job_proposes_is_confirmed_and_retired_several_at_once(script: Script, ann: Person) -> None:
    tab = ann.enter(script.service.seen, "/ui/memory")
    script.answers()
    job = script.ask()
    script.until_over(job)
    for key in ("limits", "deploy", "tests", "rumour"):
        script.service("memory", "propose", key, f"About {key}: <i>look</i> into {key}.py", "--job", job)
    until_shown(tab, "4 to decide")
    looked_at(tab, "memory-pending")
    for key in ("limits", "deploy", "tests"):
        tab.get_by_role("checkbox", name=re.compile(key)).check()
    press(tab, "Confirm the ticked ones")
    until_shown(tab, "1 to decide")
    tab.get_by_role("checkbox", name=re.compile("rumour")).check()
    press(tab, "Retire the ticked ones")
    until_shown(tab, "Nothing to confirm")
    for key in ("deploy", "tests"):
        tab.get_by_role("checkbox", name=re.compile(key)).check()
    looked_at(tab, "memory")
    press(tab, "Retire the ticked ones")
    until_shown(tab, "retired by ann@desk")
    wait_for(lambda: tab.get_by_role("checkbox", name=re.compile("deploy|tests")).count() == 0)
    states = {entry.key: entry.state.value for entry in memory.find(script.service.seen, MemoryFilter())}
    assert states == {"limits": "confirmed", "deploy": "retired", "tests": "retired", "rumour": "retired"}


def test_what_the_service_is_made_of_is_looked_up(script: Script, ann: Person) -> None:
    tab = ann.enter(script.service.seen, "/ui/agents")
    until_shown(tab, "lead")
    until_shown(tab, "● works")
    check_now(tab, "the programs are being asked")
    until_shown(tab, "acme/shop")
    looked_at(tab, "agents")
    tab.goto(f"{ann.base}/ui/settings")
    until_shown(tab, "a task keeps those it began with")
    assert "needs a restart" not in tab.inner_text("main")
    assert str(script.service.home / "config.toml") in tab.inner_text("main")
    looked_at(tab, "settings")
    tab.get_by_role("link", name="doctor").click()
    check_now(tab, "it is being checked")
    until_shown(tab, "has the namespace")
    looked_at(tab, "doctor")


def test_what_was_spent_and_who_spent_it_is_seen(script: Script, ann: Person) -> None:
    script.answers()
    script.until_over(script.ask())
    planted(script, 10, "job-7")
    tab = ann.enter(script.service.seen, "/ui/spend")
    until_shown(tab, "lead")
    until_shown(tab, "scout")
    tab.click("text=Each day as a table")
    today = time.strftime("%Y-%m-%d", time.gmtime())
    until_shown(tab, today)
    looked_at(tab, "spend")
    tab.get_by_role("link", name="7 days", exact=True).click()
    until_shown(tab, "in 7 days")


def test_jobs_are_searched_and_paged(script: Script, ann: Person) -> None:
    planted(script, 120, "job-8")
    tab = ann.enter(script.service.seen, "/ui/jobs")
    looked_at(tab, "jobs")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "q"
    tab.keyboard.type("tree job-8 number")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**q=tree*")
    seen = links(tab)
    while older(tab):
        seen += links(tab)
    assert seen == [f"/ui/trees/job-8{number:011d}" for number in reversed(range(120))]
    assert tab.input_value("#q") == "tree job-8 number"
    tab.get_by_role("link", name="Newest").click()
    tab.wait_for_url(lambda url: "cursor=" not in url)
    tab.fill("#q", "nobody wrote this")
    tab.keyboard.press("Enter")
    until_shown(tab, "No job matches")
    tab.get_by_role("link", name="Show all jobs").click()
    tab.wait_for_url("**/ui/jobs")
    tab.click("#filters > summary")
    tab.select_option("#state", "failed")
    press(tab, "Apply")
    tab.wait_for_url("**state=failed*")
    assert set(tab.locator(".line .state").all_inner_texts()) == {"✕ failed"}


def links(tab: Tab) -> list[str]:
    return [link.get_attribute("href") or "" for link in tab.locator(".line .what a").all()]


def older(tab: Tab) -> bool:
    """Open the next page of older jobs; return False if there is none."""
    link = tab.get_by_role("link", name="Older")
    if not link.count():
        return False
    address = link.get_attribute("href") or ""
    link.click()
    tab.wait_for_url(lambda url: url.endswith(address))
    return True


def planted(script: Script, number: int, prefix: str) -> None:
    """Insert so many ended trees, as a worker would have left them."""
    now = time.time()
    for index in range(number):
        root, at = f"{prefix}{index:011d}", now - 3600 * (number - index)
        task: dict[str, Any] = {"title": f"The tree {prefix} number {index}", "state": TaskState.DONE, "opened_at": at}
        used = {"usage": {"input_tokens": 12_000 + index, "output_tokens": 900}, "cost_usd": 0.05 * (index % 7)}
        times = {"queued_at": at, "started_at": at + 1, "ended_at": at + 60, "summary": "It is done and all is well."}
        state = JobState.FAILED if index % 10 == 3 else JobState.SUCCEEDED
        model = f"model-{index % 3}"
        job = seeds.job(root, state=state, model=model, **used | times)
        seeds.write(script.service.seen, seeds.task(root, ended_at=at + 60, **task), job)
