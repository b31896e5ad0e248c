"""A running job's conversation in a real browser: it follows the agent, and keeps folds and the place of a reader."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live
from tests.bridge.http.dashboard.planted import ROOT, leg
from tests.e2e.browser import Person, axe, needs_browser, person, pictures, until_shown
from workflows.model.states import JobState

pytestmark = [pytest.mark.ruling("M3", "M5"), pytest.mark.long, needs_browser]

JOB = f"{ROOT}.1"


def said(text: str) -> str:
    return json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}) + "\n"


def called(number: int, command: str, result: str, *, failed: bool = False) -> str:
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
    answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result, "is_error": failed}
    lines = ({"type": "assistant", "message": {"content": [call]}}, {"type": "user", "message": {"content": [answer]}})
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def output(service: Service) -> Path:
    """Seed a running job whose agent has printed more than one page, and return the file of its output."""
    seeds.write(
        service, seeds.task(), seeds.job(), leg(1, "look", runtime="runtime_b", state=JobState.RUNNING, ended_at=None)
    )
    folder = service.home.runs / f"{JOB}.1"
    folder.mkdir(parents=True)
    text = "".join(
        said(f"Step {n}: " + "I look at the next part of the code. " * 4)
        + called(n, f"pytest tests/test_{n}.py -q", f"{n} passed\n" * 30, failed=n % 7 == 3)
        for n in range(150)
    )
    (folder / "stdout.log").write_text(text)
    seeds.payload(service, JOB, {}, host=service.settings.host, run_dir=str(folder))
    return folder / "stdout.log"


@pytest.fixture
def ann(browser: Browser, service: Service, output: Path, listening: Callable[[Service], Live]) -> Iterator[Person]:
    with person(browser, listening(service).url) as someone:
        yield someone


def printed(output: Path, text: str) -> None:
    with output.open("a") as file:
        file.write(text)


def scrolled(tab: Tab) -> float:
    """Return the distance of the reader from the end of the conversation."""
    return float(tab.evaluate("-document.getElementById('talk').scrollTop"))


def place(tab: Tab, words: str) -> float:
    box = tab.locator("#talk li", has_text=words).bounding_box()
    assert box is not None
    return box["y"]


def test_a_running_job_is_followed_and_a_reader_keeps_fold_and_place(
    ann: Person, service: Service, output: Path
) -> None:
    tab = ann.enter(service, f"/ui/jobs/{JOB}")
    assert "Step 149" in tab.inner_text("#talk")
    assert scrolled(tab) == 0
    fold = tab.locator("#talk details", has_text="test_149.py")
    fold.locator("summary").click()
    assert "149 passed" in fold.inner_text()
    printed(output, said("Now the last step.") + called(200, "ls", "made.txt"))
    until_shown(tab, "Now the last step.")
    assert scrolled(tab) == 0, "the end stays in sight"
    assert fold.locator("pre").is_visible()
    tab.locator("#talk li", has_text="Step 140").scroll_into_view_if_needed()
    assert scrolled(tab) > 300
    before = place(tab, "Step 140")
    for number in range(20):
        printed(output, said(f"More of it: {number}."))
    until_shown(tab, "More of it: 19.")
    assert abs(place(tab, "Step 140") - before) < 40, "a reader keeps their place"
    assert fold.locator("pre").is_visible()
    pictures(tab, "conversation-live")
    assert axe(tab) == []


def test_earlier_entries_and_the_raw_output_are_a_click_away(ann: Person, service: Service) -> None:
    tab = ann.enter(service, f"/ui/jobs/{JOB}")
    tab.get_by_role("link", name="Earlier").click()
    until_shown(tab, "Newest")
    assert "Step 149" not in tab.inner_text("#talk")
    pictures(tab, "conversation-earlier")
    tab.get_by_role("link", name="Raw").first.click()
    assert '"Step 0: I look' in tab.inner_text("body")
