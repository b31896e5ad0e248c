"""Claude in a terminal follows a tree as a task of its own, over the ends of Claude and of the service (ruling S3)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.browser import Person as Ann
from tests.e2e.browser import card
from tests.e2e.claude_terminal import ASKS, FOLLOWS, ClaudeTerminal, terminals
from tests.e2e.mcp_clients import Person, Play
from tests.e2e.script import Script, played
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.long, pytest.mark.ruling("S3")]
ASK = {"human_questions": [{"id": "store", "prompt": "Redis or memory?", "choices": ["redis", "memory"]}]}
MEMORY = ("Down", "> ◯ memory")
BY_FORM = "mcp-claude through a form of claude-code, over MCP: answer on round 1"
FILLS = {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"store": "memory"}}}
"""What a hook of Claude's answers to fill a form in a person's place."""

Open = Callable[[str], ClaudeTerminal]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("mcp-tasks"))


@pytest.fixture(scope="module")
def person(script: Script) -> Iterator[Person]:
    with ScriptedModel() as model:
        yield Person(script, script.service.tmp / "away", model)


@pytest.fixture
def claude(person: Person) -> Iterator[Open]:
    with terminals(person) as opened:
        yield opened


def followed(person: Person, key: str) -> str:
    """Return a prompt on which Claude starts a task and follows it."""

    def play(_prompt: str) -> Play:
        asked = {"agent": "lead", "message": f"build {key}", "repository": "acme/shop", "request_id": key}
        yield {"mcp": {"name": "start", "input": {**asked, "follow": True}}}
        yield {"text": "It is on its way."}
        return ""

    person.model.scenarios[key] = play
    return f"Have the team do it [[fake:{key}]]"


def asking(script: Script) -> str:
    """Return the one task that waits for a person, once it does."""
    script.service.wait_for(lambda: script.service.json("attention")["waiting"])
    return str(script.service.json("attention")["waiting"][0]["root_job_id"])


def answers(script: Script, job: str) -> list[str]:
    """Return the texts of the answers that were accepted."""
    events = script.service.json("job", "events", job)
    return [event["message"] for event in events if event["kind"] == "resume_accepted"]


@pytest.mark.ruling("S1", "S3", "S8")
def test_a_running_task_is_followed_to_its_end_though_everything_is_killed(
    script: Script, person: Person, claude: Open
) -> None:
    script.answers(none=ASK | {"wait": "go"})
    terminal = claude("killed")
    terminal.start(followed(person, "killed"))
    terminal.until(FOLLOWS)
    terminal.until_kept("It is on its way.")
    terminal.kill()
    for member in ("worker", "bridge"):
        script.service.kill(member)
    terminal.start("--continue")
    terminal.until("It is on its way.", FOLLOWS)
    script.service.kill("worker")
    script.service.kill("bridge")
    (script.plans / "go").touch()
    job = asking(script)
    terminal.until(f"({job}) asks.")
    terminal.kill()
    terminal.start("--continue")
    terminal.choose(MEMORY)
    terminal.until("completed.")
    assert script.until_over(job)["task"]["state"] == "done"
    [answer] = answers(script, job)
    assert BY_FORM in answer
    assert "store: memory" in answer


@pytest.mark.ruling("F4", "S3")
def test_of_two_sessions_at_one_question_the_first_counts_and_a_declined_form_answers_nothing(
    script: Script, person: Person, claude: Open
) -> None:
    script.answers(none=ASK)
    first, second, third = (claude(name) for name in ("first", "second", "third"))
    prompt = followed(person, "two")
    for terminal in (first, second, third):
        terminal.start(prompt)
        terminal.until(ASKS)
    job = asking(script)
    third.decline()
    assert not answers(script, job)
    second.choose(MEMORY)
    script.until_over(job)
    first.choose()
    for terminal in (first, second, third):
        terminal.until("completed.")
    [answer] = answers(script, job)
    assert "store: memory" in answer


@pytest.mark.ruling("F4", "S3")
def test_a_form_is_stale_once_somebody_answered_on_the_page(
    script: Script, person: Person, claude: Open, ann: Ann
) -> None:
    script.answers(none=ASK, answered={"wait": "go-on"})
    terminal = claude("stale")
    terminal.start(followed(person, "stale"))
    terminal.until(ASKS)
    job = asking(script)
    tab = ann.enter(script.service.seen)
    card(tab, job).get_by_role("button", name="Answer: memory").click()
    script.service.wait_for(lambda: answers(script, job))
    terminal.choose()
    (script.plans / "go-on").touch()
    terminal.until("completed.")
    assert script.until_over(job)["task"]["state"] == "done"
    [answer] = answers(script, job)
    assert "store: memory" in answer
    bodies = (str(request.get("body")) for request in person.model.requests())
    assert any(f"round 1 of {job} is over: " in text and "on the page" in text for text in bodies)


@pytest.mark.ruling("S4")
def test_a_form_that_a_hook_fills_is_recorded_as_the_program_s_and_as_nobody_s_word(
    script: Script, person: Person, claude: Open
) -> None:
    script.answers(none=ASK)
    terminal = claude("hook")
    hook = {"hooks": [{"type": "command", "command": f"echo '{json.dumps(FILLS)}'"}]}
    settings = Path(script.service.extra["CLAUDE_CONFIG_DIR"], "settings.json")
    settings.write_text(json.dumps({"hooks": {"Elicitation": [hook]}}))
    try:
        terminal.start(followed(person, "hook"))
        terminal.until("completed.")
    finally:
        settings.unlink()
    job = script.service.json("job", "list")[0]["job_id"]
    script.until_over(job)
    [answer] = answers(script, job)
    assert BY_FORM in answer
    assert "store: memory" in answer
