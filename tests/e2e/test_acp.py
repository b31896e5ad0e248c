"""Tasks of an agent that speaks ACP, by a fake one in its box: a whole tree, and what ends or interrupts it (S7)."""

import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from activities.runs.os_processes import marks
from activities.store import attempt_rows
from tests import acp_agent
from tests.e2e.browser import needs_browser, person, until_shown
from tests.e2e.conftest import Installed, set_up
from tests.e2e.script import git, states

pytestmark = pytest.mark.ruling("S7")
REFUSED = ("delete", "move", "execute", "no-such-kind", "edit")


class Acp:
    """A service with the agent `mine`, which is the fake one in its box."""

    def __init__(self, service: Installed) -> None:
        self.service = service
        self.files = service.tmp / "files"
        self.files.mkdir()
        program, login = service.tmp / "bin/opencode", service.tmp / "person/.local/share/opencode/auth.json"
        for path in (program, login):
            path.parent.mkdir(parents=True)
        program.write_text(f"#!{sys.executable}\n{Path(acp_agent.__file__).read_text()}")
        program.chmod(0o755)
        login.write_text('{"a provider": {"type": "api", "key": "any"}}')
        search = os.pathsep.join((str(program.parent), os.environ["PATH"]))
        service.extra.update(PATH=search, HOME=str(service.tmp / "person"))
        section = {"adapter": "acp", "command": [sys.executable, acp_agent.__file__], "env": ["FAKE_HOME"]}
        section |= {"write": [str(self.files)], "read": [sys.prefix, sys.base_prefix]}
        section |= {"rate_limit_backoff": "1s", "network_backoff": "1s", "network": "none"}
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in section.items())
        (service.home / "config.toml").write_text(f"[runtimes.mine]\n{lines}")
        service.extra["FAKE_HOME"] = str(self.files)
        service("daemon", "start")
        words = ("--runtime", "mine", "--capabilities", "ask,review,implement", "--autonomy", "workspace-write")
        service("agent", "add", "mine", *words, "--session", "tree", "--repo", "acme/shop")

    def start(self, deed: str, action: str = "ask", *more: str, agent: str = "mine") -> str:
        order = ("agent", action, agent, f"Do it. [[acp:{deed}]]", "--repo", "acme/shop", *more)
        return str(self.service.json(*order)["job_id"])

    def file(self, job: str, name: str) -> Path:
        return self.files / job / name

    def begun(self, deed: str, action: str = "ask", *more: str) -> str:
        """Start a job, and wait until its agent has begun."""
        job = self.start(deed, action, *more)
        self.service.wait_for(self.file(job, "began").exists)
        return job

    def ended(self, job: str) -> dict[str, Any]:
        return self.service.wait_until_ended(job)

    def log(self, job: str) -> str:
        return self.service("job", "log", job).stdout

    def processes(self, job: str, words: str = "") -> list[int]:
        """Return the processes of a job whose command lines contain these words."""
        pids = []
        for pid, mark in marks():
            with contextlib.suppress(OSError):  # it ended meanwhile
                if mark.startswith(f"{job}.") and words in Path(f"/proc/{pid}/cmdline").read_text():
                    pids.append(pid)
        return pids

    def attempts(self, job: str) -> int:
        return len(attempt_rows.of_job(self.service.seen.store, job))


@pytest.fixture(scope="module")
def acp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acp]:
    service = set_up(tmp_path_factory.mktemp("acp"))
    try:
        yield Acp(service)
    finally:
        service("daemon", "stop")


def test_a_known_program_needs_no_setting(acp: Acp) -> None:
    """Its minimum version is newer than the fake one, which is told, and no reason not to try."""
    service = acp.service
    assert "fake 1.2.3 by ACP, logged in" in service.run("runtime", "check", "opencode").stdout
    can = ("--capabilities", "ask,implement", "--autonomy", "workspace-write", "--repo", "acme/shop")
    service("agent", "add", "found", "--runtime", "opencode", *can)
    job = acp.start("works", "implement", agent="found")
    shown = acp.ended(job)
    assert (shown["state"], shown["decision"]) == ("succeeded", "implemented"), shown["reason"]
    assert "fake 1.2.3, by ACP" in acp.log(job)


def test_a_tree_asks_implements_verifies_and_resumes_in_a_new_process(acp: Acp) -> None:
    job = acp.start("leads")
    acp.service.wait_for(lambda: acp.service.tree(job)["over"])
    tree = acp.service.tree(job)
    assert states(tree) == dict.fromkeys(("none", "make", "check", "normal"), "succeeded"), tree
    assert tree["task"]["state"] == "done"
    (made,) = (row for row in tree["jobs"] if row["delegation_id"] == "make")
    assert git(acp.service.repo, "show", f"{made['branch']}:a.txt") == "by acp\n"
    assert acp.file(job, "starts").read_text() == "xxxx", "each of the four jobs starts it once"
    prompts = [json.loads(line) for line in acp.file(job, "prompts").read_text().splitlines()]
    first, *_, last = prompts
    assert first[0] == last[0], "the lead goes on in its session"
    assert "### Leg `check`: succeeded, approved" in last[1], "and is told what came of its parts"
    kinds = [event["kind"] for event in acp.service.json("job", "events", job)]
    assert "session_not_resumed" not in kinds


@pytest.mark.ruling("S8")
def test_a_worker_is_killed_under_a_running_agent_which_is_started_once(acp: Acp) -> None:
    job = acp.begun("waits", "implement")
    assert "[>] wait for it" in acp.log(job), "the plan is there while it works"
    acp.service.kill("worker")
    acp.file(job, "go").touch()
    shown = acp.ended(job)
    assert (shown["state"], shown["decision"]) == ("succeeded", "implemented"), shown["reason"]
    assert (acp.file(job, "starts").read_text(), acp.attempts(job)) == ("x", 1)
    assert "permission allowed: write a.txt" in acp.log(job)


@needs_browser
@pytest.mark.ruling("M3")
def test_plan_calls_and_permissions_are_on_the_page_while_the_agent_works(acp: Acp, browser: Browser) -> None:
    job = acp.begun("waits", "implement")
    address = acp.service("dashboard", "--print").stdout.split("/ui/")[0].strip()
    with person(browser, address) as ann:
        tab = ann.enter(acp.service.seen, f"/ui/jobs/{job}")
        until_shown(tab, "[>] wait for it")
        acp.file(job, "go").touch()
        until_shown(tab, "permission allowed: write a.txt")
        until_shown(tab, "[x] look")
        if shots := os.environ.get("SHOTS"):
            tab.screenshot(path=f"{shots}/acp.png", full_page=True)


@pytest.mark.parametrize("victim", ["acp_player.py", "acp_agent.py"])
def test_player_or_agent_is_killed_and_the_job_runs_once_more(acp: Acp, victim: str) -> None:
    job = acp.begun("waits", "implement")
    player, agent = (acp.processes(job, name) for name in ("acp_player.py", "acp_agent.py"))
    os.kill(agent[-1] if victim == "acp_agent.py" else player[-1], signal.SIGKILL)
    acp.service.wait_for(lambda: acp.file(job, "starts").read_text() == "xx")
    acp.file(job, "go").touch()
    shown = acp.ended(job)
    assert (shown["state"], acp.attempts(job)) == ("succeeded", 1), shown["reason"]
    assert acp.file(job, "starts").read_text() == "xx"
    assert acp.processes(job) == []


def test_a_task_is_killed_and_its_agent_with_it(acp: Acp) -> None:
    job = acp.begun("never-ends")
    acp.service("job", "kill", job, "--now")
    shown = acp.ended(job)
    assert shown["state"] == "cancelled"
    acp.service.wait_for(lambda: acp.processes(job) == [])


def test_a_timeout_ends_the_agent_and_the_job_says_so(acp: Acp) -> None:
    job = acp.begun("never-ends", "ask", "--timeout", "5s")
    shown = acp.ended(job)
    assert shown["state"] == "failed"
    assert "the agent was stopped after its timeout" in shown["reason"]
    assert acp.processes(job) == []


def test_a_rate_limit_is_waited_for(acp: Acp) -> None:
    job = acp.start("rate-limit-once")
    shown = acp.ended(job)
    assert (shown["state"], acp.attempts(job)) == ("succeeded", 1), shown["reason"]
    assert acp.file(job, "starts").read_text() == "xx"


def test_permission_requests_are_answered_by_policy_and_each_is_in_the_log(acp: Acp) -> None:
    job = acp.start("asks-for-all", "implement")
    assert acp.ended(job)["state"] == "succeeded"
    assert acp.file(job, "answers").read_text() == "yes yes no no no no no"
    notes = re.findall(r"permission (\w+): (\S+)", acp.log(job))
    assert notes == [("allowed", "read"), ("allowed", "edit"), *(("refused", kind) for kind in REFUSED)]
