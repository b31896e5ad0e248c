"""A tree watched and controlled on its pages, in a real browser (rulings M3, M8)."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser import (
    Person,
    needs_browser,
    never_loaded_again,
    pictures,
    tree_page,
    until_shown,
    until_standing,
    until_state,
)
from tests.e2e.conflicts import conflicting, typed, writes
from tests.e2e.script import Script, git, leg, played, states, until_paused
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.ruling("M3", "M8"), needs_browser]

GROUPS, LEGS, ALONE = 3, 16, 8
"""Numbers of delegating legs, of each one's legs, and of legs beside them: with the continuations, all 64 jobs."""

SHOWN = """() => ({
  outline: Object.fromEntries([...document.querySelectorAll(".outline .job[data-item]")].map((row) =>
    [row.querySelector(".name a").pathname, row.querySelector(".state").classList[1]])),
})"""
"""The state of each job in the outline, at one moment."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("dashboard-trees"))


def go(script: Script, name: str) -> None:
    """Release an agent that waits for this file."""
    (script.plans / name).touch()


def wide(script: Script) -> str:
    """Start a tree as wide as its bounds permit; its legs wait for their release."""
    groups = [f"group-{n}" for n in range(GROUPS)]
    alone = [f"alone-{n}" for n in range(ALONE)]
    plans: dict[str, dict[str, Any]] = {"none": {"delegations": [leg(name, "ask") for name in groups + alone]}}
    plans |= {name: {"wait": "begin"} for name in alone}
    for group in groups:
        below = [f"{group}-leg-{n}" for n in range(LEGS)]
        plans[group] = {"delegations": [leg(name, "ask") for name in below]}
        plans |= {name: {"wait": "begin"} for name in below}
    script.answers(**plans)
    return script.ask()


def test_a_wide_tree_is_watched_from_its_start_to_its_end_without_loading_the_page_again(
    script: Script, ann: Person
) -> None:
    job = wide(script)
    tab = tree_page(script.service.seen, ann, job)
    seen: dict[str, set[str]] = {}

    def look() -> dict[str, str]:
        shown = tab.evaluate(SHOWN)
        for node, state in shown["outline"].items():
            seen.setdefault(node, set()).add(state)
        return dict(shown["outline"])

    before = 1 + GROUPS + ALONE + GROUPS * LEGS
    wait_for(lambda: len(look()) == before and "running" in look().values())
    pictures(tab, "wide-runs")
    go(script, "begin")
    wait_for(lambda: look() and "Done" in tab.get_by_label("Where it stands").inner_text(), lambda: look())
    assert len(look()) == before + GROUPS + 1
    assert set(look().values()) == {"succeeded"}
    assert any({"running", "succeeded"} <= states for states in seen.values())
    assert sum({"queued", "succeeded"} <= states for states in seen.values()) > LEGS
    assert never_loaded_again(tab)
    served = ann.context.request.get(f"{ann.base}/ui/trees/{job}").body()
    assert len(served) < 150_000
    assert tab.evaluate("document.documentElement.outerHTML.length") < 150_000
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    pictures(tab, "wide-done")


def test_the_page_of_a_leg_tells_all_of_it_while_it_runs_and_afterwards(script: Script, ann: Person) -> None:
    findings = [{"title": "no test covers it", "severity": "minor"}, "the name is misleading"]
    script.answers(
        none={"delegations": [leg("make")]},
        make=writes(made_txt="hello\n", odd_txt="unclaimed\n")
        | {"changes_made": ["made.txt: greets", "src/never.py: fixed"], "findings": findings}
        | {"say": {"reading the code": "think", "thinking hard": "go"}},
    )
    job = script.ask()
    tab = tree_page(script.service.seen, ann, job)
    until_state(tab, f"{job}.1", "running")
    tab.get_by_role("link", name="make").first.click()
    until_shown(tab, "reading the code")
    tab.evaluate("window.neverLoadedAgain = true")
    assert "thinking hard" not in tab.inner_text("main")
    go(script, "think")
    until_shown(tab, "thinking hard")
    until_shown(tab, "What it has changed so far")
    pictures(tab, "leg-runs")
    go(script, "go")
    until_standing(tab, "changes made")
    for words in ("Findings", "no test covers it", "the name is misleading", "observed", "reported"):
        until_shown(tab, words)
    until_shown(tab, "made.txt is in the diff")
    until_shown(tab, "src/never.py: not in the diff")
    until_shown(tab, "Changed, but not reported")
    whole = tab.locator("#talk")
    for words in ("reading the code", "thinking hard", "service_result"):
        assert words in whole.inner_text()
    assert never_loaded_again(tab)
    assert tab.get_by_role("heading", name="Events").is_visible()
    pictures(tab, "leg-done")
    tab.get_by_role("link", name="made.txt").click()
    assert tab.locator("#file-1 .add", has_text="hello").is_visible()
    tab.go_back()
    tab.locator(f"main a[href='/ui/trees/{job}']").click()
    until_standing(tab, "ready to merge")


@pytest.mark.ruling("O6")
def test_a_comment_on_a_line_goes_back_to_the_leg_and_what_comes_of_it_is_merged(script: Script, ann: Person) -> None:
    script.answers(none={"delegations": [leg("make")]}, make=writes(made_txt="hello\nworld\n"))
    job = script.ask()
    script.until_over(job)
    script.answers(none=writes(made_txt="hello\nall of you\n"))
    tab = tree_page(script.service.seen, ann, job)
    tab.get_by_role("link", name="make").first.click()
    tab.get_by_role("link", name="Diff", exact=True).click()
    tab.evaluate("window.neverLoadedAgain = true")
    tab.locator("#file-1 button", has_text="2").press("Enter")
    field = tab.get_by_label("Comment on made.txt, line 2")
    field.wait_for()
    assert field.bounding_box()["width"] > 400, "it stands below the whole line, not in the column of numbers"  # type: ignore[index]
    tab.keyboard.type("Greet everybody.")
    pictures(tab, "comment")
    assert never_loaded_again(tab)
    tab.get_by_role("button", name="Send to dev").click()
    until_shown(tab, "dev works on your comments")
    new = tab.locator("main [href^='/ui/jobs/job-']").first.get_attribute("href") or ""
    new = new.rpartition("/")[2]
    script.until_over(new)
    until_standing(tab, "ready to merge")
    assert "- `made.txt:2` (new): > `world`\n\n  Greet everybody." in script.prompt(new)
    assert script.service.json("job", "merge", new)["merged"] == [new]
    task = f"service/{script.tree(job)['task']['task_id']}"
    assert git(script.service.repo, "show", f"{task}:made.txt") == "hello\nall of you\n"
    tab.goto(f"{ann.base}/ui/jobs/{new}/diff")
    assert tab.locator("#file-1 .add").inner_text() == "all of you"


def test_a_tree_is_ended_on_its_page_and_who_did_it_is_told(script: Script, ann: Person) -> None:
    script.answers(none={"delegations": [leg("slow", "ask"), leg("never", "ask", deps=["slow"])]}, slow={"wait": "go"})
    job = script.ask()
    tab = tree_page(script.service.seen, ann, job)
    until_state(tab, f"{job}.1", "running")
    tab.locator("#actions > summary").click()
    pictures(tab, "kill-open")
    tab.get_by_role("button", name="End the task", exact=True).click()
    until_standing(tab, "It is being ended")
    until_state(tab, f"{job}.1", "running")
    go(script, "go")
    until_standing(tab, "killed by ann@desk, on the page")
    until_standing(tab, "cancelled")
    assert states(script.until_over(job))["slow"] == "succeeded"
    assert never_loaded_again(tab)
    pictures(tab, "killed")


def test_a_tree_is_ended_now_on_its_page_and_its_agents_stop(script: Script, ann: Person) -> None:
    script.answers(none={"delegations": [leg("stuck", "ask")]}, stuck={"wait": "never"})
    job = script.ask()
    tab = tree_page(script.service.seen, ann, job)
    until_state(tab, f"{job}.1", "running")
    tab.locator("#actions > summary").click()
    tab.get_by_role("button", name="End the task now").click()
    until_standing(tab, "killed by ann@desk, on the page")
    until_state(tab, f"{job}.1", "cancelled")
    script.until_over(job)
    until_standing(tab, "cancelled")
    tab.get_by_role("link", name="Log").click()
    until_shown(tab, "the task was killed by ann@desk, on the page")


def test_a_conflict_is_told_and_ends_when_one_leg_is_dropped_on_the_page(script: Script, ann: Person) -> None:
    job = conflicting(script)
    tab = tree_page(script.service.seen, ann, job)
    until_standing(tab, "Merge conflict")
    tab.get_by_role("link", name="Changes").click()
    tab.evaluate("window.neverLoadedAgain = true")
    tab.get_by_role("button", name="Merge all 2").click()
    until_shown(tab, "conflicts with part left")
    assert "in same.txt; nothing was changed" in tab.inner_text("#notes")
    ann.forgive("409")
    pictures(tab, "conflict-refused")
    tab.get_by_role("checkbox", name="left").check()
    tab.get_by_role("button", name="Merge the chosen").click()
    until_shown(tab, f"is merged into service/{script.tree(job)['task']['task_id']}")
    tab.get_by_role("checkbox", name="right").check()
    tab.locator("#actions > summary").click()
    tab.locator("#force-drop").check()
    tab.get_by_role("button", name="Drop the chosen").click()
    until_shown(tab, "is dropped. It can be brought back.")
    pictures(tab, "conflict-dropped")
    assert never_loaded_again(tab)
    tab.get_by_role("link", name="Overview").click()
    tab.get_by_role("button", name="Retry see").click()
    until_standing(tab, "ready to merge")
    assert states(script.tree(job))["see"] == "succeeded"
    tab.get_by_role("link", name="Log").click()
    until_shown(tab, "ann@desk, on the page merged service/")


def test_the_commands_that_a_page_prints_end_a_conflict(script: Script, ann: Person) -> None:
    job = conflicting(script)
    tab = tree_page(script.service.seen, ann, job)
    until_standing(tab, "Merge conflict")
    tab.get_by_label("Where it stands").locator("summary", has_text="by hand").click()
    tab.get_by_role("button", name="Merge part").first.click()
    until_shown(tab, "is merged into service/")
    typed(script, tab.get_by_role("article", name="Merge conflict").locator("pre").inner_text().splitlines())
    tab.get_by_role("button", name="Retry see").click()
    until_standing(tab, "ready to merge")
    assert "Merge conflict" not in tab.inner_text("main")


def test_every_way_to_a_tree_leads_to_its_page(
    script: Script, ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = _paused(script)
    opened = tmp_path / "opened"
    (tmp_path / "xdg-open").write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    (tmp_path / "xdg-open").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    output = at_a_terminal(script, "job", "tree", job, "--web")
    wait_for(lambda: opened.exists() and opened.read_text().endswith("\n"), output)
    link = opened.read_text().strip()
    assert link in output
    tab = ann.context.new_page()
    tab.goto(link)
    assert tab.url.endswith(f"/ui/trees/{job}")
    until_standing(tab, "Which color?")
    pictures(tab, "paused")

    tab.locator("#actions > summary").click()
    tab.get_by_role("link", name="Open in Temporal").click()
    until_shown(tab, job)
    assert f"/workflows/{job}" in tab.url
    page = f"{ann.base}/ui/trees/{job}"
    tab.get_by_text("User Metadata", exact=True).click()
    wait_for(
        lambda: any(page in frame.inner_text("body") for frame in tab.frames), lambda: tab.inner_text("body")[:3000]
    )
    pictures(tab, "temporal")

    kept = script.service.home / "notifications.jsonl"
    wait_for(lambda: kept.exists() and any(json.loads(line)["root_job_id"] == job for line in _lines(kept)))
    [notification] = [entry for line in _lines(kept) if (entry := json.loads(line))["root_job_id"] == job]
    assert (notification["page"], f"or on the page {page}" in notification["text"]) == (page, True)
    tab.goto(notification["page"])
    tab.get_by_label("Where it stands").get_by_role("button", name="Answer: red").wait_for()
    script.service("resume", job, "answer", "red")
    script.until_over(job)
    ann.faults[:] = [fault for fault in ann.faults if ann.base in fault]  # errors of Temporal's pages are not ours
    ann.forgive("favicon.ico")


def at_a_terminal(script: Script, *words: str) -> str:
    """Return a command's output on a terminal."""
    spawn = "import pty, sys; pty.spawn(sys.argv[1:])"
    environment = script.service.environment | {"TERM": "dumb"}
    command = [sys.executable, "-c", spawn, "service", *words]
    return subprocess.run(command, env=environment, cwd=script.service.tmp, capture_output=True, text=True).stdout


def _paused(script: Script) -> str:
    question = {"id": "color", "prompt": "Which color?", "choices": ["red", "blue"]}
    script.answers(none={"human_questions": [question]}, replan={"decision": "approved"})
    job = script.ask()
    until_paused(script, job)
    return job


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()
