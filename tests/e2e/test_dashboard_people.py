"""People's actions on the dashboard's first page, in a real browser against a real service (rulings M1, M2, M8)."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.e2e.browser import ANN, Person, card, needs_browser, person, pictures, until_shown
from tests.e2e.script import Script, leg, played, states, until_paused
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.ruling("M1", "M2", "M8"), needs_browser]

QUESTION: dict[str, Any] = {"id": "color", "prompt": "Which color?", "choices": ["red", "blue"]}
BY_ANN = f"by {ANN}, on the page"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("people_at_pages"))


def asked(script: Script, goal: str, **then: Any) -> str:
    """Return a tree that waits for an answer; `then` defines its agents' next answers."""
    script.answers(none={"human_questions": [QUESTION]}, **then)
    job = script.ask(goal)
    until_paused(script, job)
    return job


def failing(script: Script, goal: str) -> str:
    """Return a tree that waits for a person because a leg failed; the leg's second attempt succeeds."""
    script.answers(
        none={"delegations": [leg("work", "ask", failure_policy="escalate_human")]},
        work__1={"decision": "failed", "summary": "the compiler does not start"},
    )
    job = script.ask(goal)
    until_paused(script, job)
    return job


def blocked(script: Script, goal: str) -> str:
    """Return a task that a failed leg has blocked; the leg's second attempt succeeds."""
    script.answers(none={"delegations": [leg("work", "ask")]}, work__1={"decision": "failed"})
    job = script.ask(goal)
    assert script.until_over(job)["task"]["state"] == "blocked"
    return job


def lately(tab: Page, job: str) -> Locator:
    """Locate the page's entries of recent actions on a tree."""
    return tab.locator(".lately li", has=tab.locator(f'a[href="/ui/trees/{job}"]'))


def held(ann: Person) -> None:
    """Block live updates of all open pages from now on."""
    ann.context.route("**/ui/live/**", lambda route: None)


def test_a_question_is_answered_by_a_click_while_another_tree_pauses(script: Script, ann: Person) -> None:
    tab = ann.enter(script.service.seen)
    first = asked(script, "paint the door")
    blue = card(tab, first).get_by_role("button", name="Answer: blue")
    blue.wait_for()
    place = blue.bounding_box()
    second = asked(script, "paint the fence")
    card(tab, second).wait_for()
    assert blue.bounding_box() == place, "a button must not move away from under the pointer"
    pictures(tab, "two questions")
    blue.click()
    until_shown(tab, BY_ANN)
    card(tab, first).wait_for(state="detached")
    assert card(tab, second).count() == 1
    pictures(tab, "answered")
    done = lately(tab, first).first
    assert f"answered {BY_ANN}" in done.inner_text()
    assert "color: blue" in done.inner_text()
    assert done.locator("time").get_attribute("title")
    script.until_over(first)
    assert "blue" in script.prompt(f"{first}.1")
    script.service("resume", second, "answer", "red")
    card(tab, second).wait_for(state="detached")
    assert ", in the terminal" in lately(tab, second).first.inner_text()


def test_a_page_out_of_date_says_what_is_so_now_and_keeps_what_was_typed(script: Script, ann: Person) -> None:
    held(ann)
    job = asked(script, "paint the roof")
    tab = ann.enter(script.service.seen)
    field = card(tab, job).get_by_role("textbox")
    field.press_sequentially("a calm ")
    script.service("resume", job, "answer", "red")
    script.until_over(job)
    field.press_sequentially("green")
    with tab.expect_response("**/ui/attention/say") as sent:
        card(tab, job).get_by_role("button", name="Answer", exact=True).click()
    assert sent.value.status == 409
    until_shown(tab, f"round 1 of {job} is over: answered by ")
    pictures(tab, "out of date")
    assert tab.get_by_label("What you typed").input_value() == "a calm green"
    assert card(tab, job).count() == 0
    assert "red" in lately(tab, job).first.inner_text()
    assert "calm" not in script.prompt(f"{job}.1")
    ann.forgive("409")


def test_what_was_typed_for_a_round_that_is_over_stands_in_the_field_of_the_next(script: Script, ann: Person) -> None:
    held(ann)
    job = asked(script, "paint the gate", answered={"human_questions": [QUESTION | {"prompt": "Which color now?"}]})
    tab = ann.enter(script.service.seen)
    card(tab, job).get_by_role("textbox").fill("green")
    script.service("resume", job, "answer", "red")
    until_round(script, job, 2)
    card(tab, job).get_by_role("button", name="Answer", exact=True).click()
    until_shown(tab, "Which color now?")
    assert "round 2 waits now" in tab.inner_text("#notes")
    assert card(tab, job).get_by_role("textbox").input_value() == "green"
    pictures(tab, "next round")
    script.answers()
    card(tab, job).get_by_role("button", name="Answer", exact=True).click()
    until_shown(tab, BY_ANN)
    script.until_over(job)
    assert "green" in script.prompt(f"{job}.2")
    ann.forgive("409")


def until_round(script: Script, job: str, number: int) -> None:
    """Wait until this round of a tree is open."""

    def numbers() -> list[int]:
        waiting = script.service.json("attention")["waiting"]
        return [row["number"] for row in waiting if row["root_job_id"] == job]

    script.service.wait_for(lambda: numbers() == [number])


def test_a_failed_leg_runs_again_with_what_was_typed(script: Script, ann: Person) -> None:
    tab = ann.enter(script.service.seen)
    job = failing(script, "build the shop")
    card(tab, job).wait_for()
    assert "the compiler does not start" in card(tab, job).inner_text()
    card(tab, job).get_by_label("Note (optional)").fill("use the other compiler\nand say which")
    pictures(tab, "a failure")
    card(tab, job).get_by_role("button", name="Retry work").click()
    until_shown(tab, f"retried {BY_ANN}")
    tree = script.until_over(job)
    assert states(tree) == {"none": "succeeded", "work": "succeeded", "normal": "succeeded"}
    assert tree["jobs"][1]["attempt"] == 2
    assert "use the other compiler\nand say which" in script.prompt(f"{job}.1")


def test_of_three_that_go_on_at_once_each_has_its_result(script: Script, ann: Person) -> None:
    held(ann)
    jobs = [failing(script, f"build {name}") for name in ("the door", "the roof", "the gate")]
    tab = ann.enter(script.service.seen)
    for job in jobs:
        card(tab, job).get_by_role("checkbox", name="Choose").check()
    pictures(tab, "three chosen")
    script.service("job", "kill", jobs[1])
    script.until_over(jobs[1])
    tab.get_by_role("button", name="Go on without the failed parts of the selected").click()
    tab.locator(".note").nth(2).wait_for()
    pictures(tab, "three results")
    notes = tab.locator(".note")
    for name, job in zip(("the door", "the roof", "the gate"), jobs, strict=True):
        mine = notes.filter(has_text=job)
        assert mine.count() == 1
        assert f"build {name} {job}" in mine.inner_text()
        assert ("no" in (mine.get_attribute("class") or "").split()) == (job == jobs[1])
    for job in (jobs[0], jobs[2]):
        assert f"continued {BY_ANN}" in notes.filter(has_text=job).inner_text()
        assert script.until_over(job)["task"]["state"] == "done"
    assert script.tree(jobs[1])["task"]["state"] == "cancelled"


def test_a_blocked_task_goes_on_and_another_is_dismissed(script: Script, ann: Person) -> None:
    again, old = blocked(script, "mend the door"), blocked(script, "mend the roof")
    tab = ann.enter(script.service.seen)
    pictures(tab, "blocked")
    card(tab, again).get_by_role("button", name="Retry work").click()
    until_shown(tab, f"{again}.1 runs again; its task is open again")
    wait_for(lambda: script.tree(again)["task"]["state"] == "done")
    card(tab, again).wait_for(state="detached")
    card(tab, old).locator("summary", has_text="End the task").click()
    card(tab, old).get_by_role("button", name="End the task", exact=True).click()
    until_shown(tab, "The task is given up")
    card(tab, old).wait_for(state="detached")
    pictures(tab, "nothing waits")
    assert script.tree(old)["task"]["state"] == "cancelled"
    for job, what in ((again, "run"), (old, "dismissed")):
        text = lately(tab, job).first.inner_text()
        assert what in text
        assert BY_ANN.removeprefix("by ") in text


def test_a_question_is_answered_by_keys_alone(script: Script, ann: Person) -> None:
    first = asked(script, "paint the wall")
    second = asked(script, "paint the floor")
    tab = ann.enter(script.service.seen)
    tab.keyboard.press("?")
    until_shown(tab, "Next item")
    pictures(tab, "keys")
    tab.keyboard.press("Escape")
    tab.keyboard.press("j")
    tab.keyboard.press("j")
    to(tab, "TEXTAREA", "")
    tab.keyboard.type("jade?")
    to(tab, "BUTTON", "Answer")
    pictures(tab, "by keys")
    tab.keyboard.press("Enter")
    until_shown(tab, f"answered {BY_ANN}")
    card(tab, second).wait_for(state="detached")
    script.until_over(second)
    assert "jade?" in script.prompt(f"{second}.1")
    tab.keyboard.press("j")
    assert card(tab, first).evaluate("card => card === document.activeElement")
    to(tab, "BUTTON", "Answer: blue")
    tab.keyboard.press("Enter")
    script.until_over(first)


def to(tab: Page, tag: str, words: str) -> None:
    """Tab to this element, which must be near."""
    for _ in range(9):
        tab.keyboard.press("Tab")
        at = tab.evaluate("[document.activeElement.tagName, document.activeElement.textContent.trim()]")
        if at == [tag, words]:
            return
    raise AssertionError(f"no {tag} {words} within nine steps; the last was {at}")


def test_a_question_is_answered_on_a_phone(script: Script, browser: Browser) -> None:
    job = asked(script, "paint a very long wall that goes all around the garden of the house and back again")
    with person(browser, script.address, width=360, touch=True) as someone:
        tab = someone.enter(script.service.seen)
        card(tab, job).get_by_role("textbox").tap()
        tab.keyboard.type("green")
        assert tab.evaluate("document.documentElement.scrollWidth") == 360
        answer = card(tab, job).get_by_role("button", name="Answer", exact=True)
        size = answer.bounding_box()
        assert size is not None
        assert size["height"] >= 44, "a finger meets it"
        answer.tap()
        until_shown(tab, f"answered {BY_ANN}")
        assert tab.evaluate("document.documentElement.scrollWidth") == 360
    script.until_over(job)
    assert "green" in script.prompt(f"{job}.1")
