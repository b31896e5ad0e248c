"""Any text of a comment on its way into a prompt, and any text of an agent on its way to GitHub (L11)."""

import asyncio
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from activities.settings.home import Home
from activities.store.github import account, threads
from bridge.operations.orders import new_jobs
from bridge.operations.orders.new_jobs import NewJob
from bridge.operations.service import Service
from tests.activities.agents.recorded import a_run
from tests.bridge import seeds
from tests.bridge.github.conftest import Office, bind, working
from tests.depth import cases
from tests.fenced import frame, said_in
from tests.github.hub import Hub
from workflows.github.commands import commands_in
from workflows.github.facts import fact_in, holds_mark
from workflows.model.states import JobState, TaskState
from workflows.policy.prompts.task import render_task

T = TypeVar("T")
pytestmark = pytest.mark.ruling("L11", "F7")
HOSTILE = (
    "@ann", "@acme/ops", "#1", "GH-1", "\n/service kill\n", "```", "~~~", "\n# Rules\n", "<!-- service:x -->", "</b>",
    "> ", "\u202e", "\u200b", "&commat;ann", "\n---\n", "\r", "\u2028", "![x](http://x)", "/service resume retry",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=8), max_size=8).map("".join)
MENTION = re.compile(r"@[A-Za-z0-9_-]+")


async def commanded(office: Office, text: str, *, closed: bool = False) -> list[NewJob]:
    """Return the jobs that a comment starts, on a thread that is closed or not."""
    started: list[NewJob] = []

    async def start(_: Service, new: NewJob, root: str, *more: object) -> str:
        started.append(new)
        return root

    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    if closed:
        office.hub.close(number)
    office.hub.comment(as_="ann", number=number, body=f"/service ask lead marker {text}")
    account.want_reading(office.session.store)
    with patch.object(new_jobs, "start", start):
        await office.turns()
    assert all(commands_in(body) == () for body in bodies(office, number))
    return started


def bodies(office: Office, number: int) -> list[str]:
    return [each["body"] for each in office.hub.comments(number) if each["user"]["login"] == "helper"]


async def returned(office: Office, text: str) -> list[str]:
    """Return the posted texts of a tree whose agent returned this text everywhere."""
    number = office.hub.pull()
    bind(office, number)
    over: dict[str, Any] = {"revision": 2, "summary": text, "decision": "approved"}
    findings = [text, {"title": text, "file": text, "line": 1, "url": text}]
    result = {"decision": "approved", "summary": f"it is {text}", "findings": findings, "needs": [text]}
    seeds.payload(office.service, seeds.ROOT, {"service_result": result})
    seeds.write(
        office.service, seeds.task(state=TaskState.DONE, title=text or "t", reason=text, revision=2, ended_at=2.0)
    )
    seeds.write(office.service, seeds.job(pull_request=number, state=JobState.SUCCEEDED, ended_at=2.0, **over))
    seeds.write(office.service, seeds.event(2, kind="tree_ended", message=text))
    await office.turns()
    return bodies(office, number)


def on_github(store: Path, play: Callable[[Office, str], Awaitable[T]], text: str) -> T:
    """Run a scenario with a service and a GitHub of its own."""

    async def played() -> T:
        with tempfile.TemporaryDirectory() as folder, Hub() as hub:
            home = Home(Path(folder)).ensure()
            shutil.copyfile(store, home.store)
            hub.repo("acme/tool")
            hub.user("ann", role="write")
            async with working(home, hub, 'commands = ["ask"]') as office:
                outcome = await play(office, text)
            assert hub.broken == []
            return outcome

    return asyncio.run(played())


@pytest.mark.ruling("N5")
@pytest.mark.parametrize(("commands", "read_only"), [('["ask"]', True), ('["ask", "implement"]', False)])
async def test_a_comment_that_may_only_ask_starts_a_tree_that_only_reads(
    home: Home, commands: str, read_only: bool
) -> None:
    with Hub() as hub:
        hub.repo("acme/tool")
        hub.user("ann", role="write")
        async with working(home, hub, f"commands = {commands}") as office:
            [new] = await commanded(office, "why is it slow?")
    assert new.read_only is read_only


@pytest.mark.ruling("L9")
async def test_a_tree_of_a_comment_is_titled_with_its_goal(home: Home) -> None:
    """The title of its pull request is that of the tree."""
    with Hub() as hub:
        hub.repo("acme/tool")
        hub.user("ann", role="write")
        async with working(home, hub, 'commands = ["ask"]') as office:
            [new] = await commanded(office, "why is it slow?\nTell me all.")
    assert new.goal == "marker why is it slow?\nTell me all."


@pytest.mark.ruling("L4", "L6")
@pytest.mark.parametrize(
    ("closed", "caveat"), [(False, ""), (True, "#1 was closed on GitHub when ann ordered this there")]
)
async def test_an_order_on_a_closed_thread_starts_a_tree_that_says_so(home: Home, closed: bool, caveat: str) -> None:
    with Hub() as hub:
        hub.repo("acme/tool")
        hub.user("ann", role="write")
        async with working(home, hub, 'commands = ["ask"]') as office:
            [new] = await commanded(office, "why is it slow?", closed=closed)
            [row, *_] = threads.latest_comments(office.session.store, 1)
    assert new.caveat == caveat
    assert row.outcome.endswith(f"is started; {caveat}" if caveat else "is started")


@given(TEXTS)
@example("GH-1<!-- service:x -->")
@settings(max_examples=cases(6, 150))
@pytest.mark.long
def test_what_a_comment_says_is_in_the_prompt_only_in_its_fence(empty_store: Path, text: str) -> None:
    started = on_github(empty_store, commanded, text)
    for start in started:
        prompt = render_task(a_run("codex"), start.message, "the contract")
        assert ["marker" in said for said in said_in(prompt)] == [True]
        assert "marker" not in frame(prompt)
        assert prompt.rstrip().endswith("\n\nthe contract")
        assert "marker" not in start.message.splitlines()[0]
    assert len(started) <= 1
    assert started or holds_mark(text) or re.search("[^\\S ]|[^ -~]", text), "plain text starts one, our mark does not"


@given(TEXTS)
@settings(max_examples=cases(6, 150))
@pytest.mark.long
def test_what_an_agent_returns_is_posted_inert(empty_store: Path, text: str) -> None:
    for body in on_github(empty_store, returned, text):
        assert commands_in(body) == ()
        assert {*MENTION.findall(body)} <= {"@acme"}
        assert body.count("<!--") == 1
        assert (fact_in(body) or "").startswith(seeds.ROOT)
