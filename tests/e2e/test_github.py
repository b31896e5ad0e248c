"""A tree of a pull request or an issue, from its start to its end, as people see it there (L1 to L10)."""

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from activities.store.github import account, facts
from tests.e2e.conflicts import writes
from tests.e2e.conftest import Installed, set_up
from tests.e2e.script import Script, git, leg
from tests.github.fixtures import github as github
from tests.github.fixtures import hub as hub
from tests.github.hub import Hub
from tests.github.keys import private_key
from tests.github.wire import Reply, Request
from tests.waiting import wait_for
from workflows.github.facts import fact_in

ASKS = {"human_questions": [{"id": "color", "prompt": "Which color?", "choices": ["red", "blue"]}]}
FINDING = {"title": "The limit is wrong", "file": "limiter.py", "line": 1, "severity": "high"}


@dataclass
class Shop:
    """A service whose repository acme/shop is acme/tool on GitHub, with an open pull request."""

    github: Hub
    script: Script
    remote: Path
    number: int

    @property
    def service(self) -> Installed:
        return self.script.service

    @property
    def head(self) -> str:
        return git(self.remote, "rev-parse", f"refs/pull/{self.number}/head").strip()

    def push(self, text: str) -> str:
        """Push a commit to the pull request as another person, and return the new head."""
        work = self.service.tmp / f"work-{text}"
        git(self.service.tmp, "clone", "-q", str(self.remote), str(work))
        git(work, "fetch", "-q", "origin", f"refs/pull/{self.number}/head")
        git(work, "checkout", "-q", "FETCH_HEAD")
        (work / "limiter.py").write_text(f"limit = {text!r}\n")
        git(work, "add", ".")
        git(work, "-c", "user.name=ann", "-c", "user.email=a@example.invalid", "commit", "-q", "-m", text)
        git(work, "push", "-q", "origin", f"+HEAD:refs/pull/{self.number}/head")
        sha = git(work, "rev-parse", "HEAD").strip()
        self.github.push_head(self.number, sha)
        return sha

    def mine(self) -> list[dict[str, Any]]:
        """Return the pull requests of the service's own branches."""
        return [pull for pull in self.github.pulls() if pull["head"]["ref"].startswith("service/")]

    def look(self) -> None:
        """Request a read of the comments, as a webhook does."""
        account.want_reading(self.service.seen.store)

    def bodies(self, number: int | None = None) -> dict[str, str]:
        """Return our comments, by their marks."""
        bodies = self.github.bodies(number or self.number)
        return {mark: body for body in bodies if (mark := fact_in(body))}

    def wait_for(self, what: Callable[[], object]) -> None:
        log = self.service.home / "logs" / "github.log"
        detail = lambda: (log.read_text()[-3000:] if log.exists() else "no log", self.bodies())  # noqa: E731
        wait_for(what, detail)

    def wait_for_requests(self, more: int) -> None:
        """Wait for so many requests, or until all is written."""
        target = len(self.github.requests) + more
        self.wait_for(lambda: len(self.github.requests) >= target or self.written())

    def written(self) -> bool:
        """Return whether nothing is left to write."""
        return facts.waiting_until(self.service.seen.store) is None


@pytest.fixture
def shop(github: Hub, tmp_path: Path) -> Iterator[Shop]:
    installation = github.app()
    (key := tmp_path / "app.pem").write_text(private_key())
    key.chmod(0o600)
    service = set_up(tmp_path)
    script = Script(service)
    service.extra["PLANS"] = str(script.plans)
    with (service.home / "config.toml").open("a") as config:
        config.write(
            f'[github]\napp_id = "4242"\ninstallation_id = "{installation}"\nprivate_key_file = "{key}"\n'
            f'api_url = "{github.address}"\ncheck = true\n'
            'commands = ["resume", "status", "ask", "review", "implement", "kill"]\n'
        )
    remote = tmp_path / "tool.git"
    git(service.repo, "init", "-q", "--bare", "-b", "main", str(remote))
    git(service.repo, "remote", "add", "origin", str(remote))
    git(service.repo, "push", "-q", "origin", "main", "main:refs/pull/1/head")
    service("repo", "add", "acme/shop", str(service.repo), "--github", "acme/tool")
    made = Shop(github, script, remote, github.pull("topic"))
    assert made.number == 1
    made.push("first")
    service("daemon", "start")
    try:
        yield made
    finally:
        service("daemon", "stop")


def check(shop: Shop, sha: str, root: str = "") -> str:
    """Return the conclusion of `service/gate` for a commit; with a root, the one for that tree."""
    ours = (run for run in shop.github.checks(sha) if run["name"] == "service/gate")
    checks = [run for run in ours if run["external_id"].startswith(root)]
    return str(checks[0]["conclusion"] or checks[0]["status"]) if checks else ""


@pytest.mark.ruling("L1", "L3", "L4", "L6", "L10", "F6", "F7")
def test_a_review_of_a_pull_request_from_its_start_to_its_merge(shop: Shop) -> None:
    github, number, first = shop.github, shop.number, shop.head
    github.protect("main", ("service/gate",))
    shop.script.answers(
        none=ASKS | {"decision": "approved"},
        answered={"decision": "changes_requested", "findings": [FINDING], "summary": "ping @ann and #1"},
    )
    words = ("agent", "review", "lead", "Review the change", "--repo", "acme/shop", "--pr", str(number))
    root = str(shop.service.json(*words)["job_id"])
    shop.wait_for(lambda: f"{root}-r1-pause" in shop.bodies())
    pause = shop.bodies()[f"{root}-r1-pause"]
    assert "@acme" in pause
    assert f"/service resume {root} answer" in pause
    assert "needs you" in shop.bodies()[f"{root}-status"]
    shop.wait_for(lambda: check(shop, first) == "in_progress")
    assert github.merge(number) == 405

    comment = github.comment(
        as_="ann", number=number, body=f"Sure.\n\n/service resume {root} answer --other\ncolor: red,\nbut dark"
    )
    shop.look()
    shop.wait_for(lambda: {content for _, content in github.reactions(comment)} == {"eyes", "+1"})
    shop.service.wait_until_ended(root)
    assert "red,\nbut dark" in shop.script.prompt(f"{root}.1")
    shop.wait_for(lambda: check(shop, first) == "failure" and shop.written())
    end = next(body for mark, body in shop.bodies().items() if mark.endswith("-end"))
    assert "The limit is wrong" in end
    assert "@ann" not in end
    assert github.merge(number) == 405
    assert len(github.comments(number)) == 4

    second = shop.push("second")
    shop.look()
    shop.wait_for(lambda: check(shop, second) in {"in_progress", "failure"})
    shop.script.answers(none={"decision": "approved"})
    asked = github.comment(as_="ann", number=number, body="/service review lead Look again, please")
    shop.look()
    shop.wait_for(lambda: check(shop, second) == "success" and shop.written())
    assert ("our-service[bot]", "+1") in github.reactions(asked)
    assert check(shop, first) == "failure"
    assert github.merge(number) == 200


@pytest.mark.ruling("L10")
@pytest.mark.long
def test_here_and_there_the_same_tree_is_refused_and_merged(shop: Shop) -> None:
    github, number, service = shop.github, shop.number, shop.service
    github.protect("main", ("service/gate",))
    head, legs = shop.head, [leg("one"), leg("check", "review", deps=["one"])]
    words = ("agent", "ask", "lead", "Raise the limit", "--repo", "acme/shop", "--pr", str(number))

    def tree(decision: str, verdict: str) -> str:
        shop.script.answers(none={"delegations": legs}, one=writes(b_txt="100\n"), check={"decision": decision})
        root = str(service.json(*words)["job_id"])
        shop.script.until_over(root)
        shop.wait_for(lambda: shop.written() and check(shop, head, root) == verdict)
        assert github.merge(number) == 405
        return root

    against = tree("changes_requested", "failure")
    no = service("job", "merge", f"{against}.1", code=3).stderr
    assert "part check" in no
    root = tree("approved", "in_progress")  # its work is not in the pull request yet
    service("job", "merge", f"{root}.1")
    task = f"service/{shop.script.tree(root)['task']['task_id']}"
    git(service.repo, "push", "-q", "origin", f"{task}:refs/pull/{number}/head")
    merged = github.push_head(number, git(service.repo, "rev-parse", task).strip())
    shop.look()
    shop.wait_for(lambda: check(shop, merged) == "success")
    assert github.merge(number) == 200


@pytest.mark.ruling("L1", "L3", "L4")
@pytest.mark.long
def test_an_issue_is_a_place_to_work_from_too(shop: Shop) -> None:
    github = shop.github
    number = github.issue("Raise the limit")
    shop.script.answers(none={"decision": "implemented", "write": {"limiter.py": "limit = 100\n"}})
    words = ("agent", "ask", "lead", "What of it?", "--repo", "acme/shop", "--issue", str(number))
    root = str(shop.service.json(*words)["job_id"])
    shop.service.wait_until_ended(root)
    github.comment(as_="ann", number=number, body="/service implement dev Raise it to 100")
    shop.look()
    shop.wait_for(lambda: len([mark for mark in shop.bodies(number) if mark.endswith("-end")]) == 2 and shop.written())
    comment = github.comment(as_="ann", number=number, body="/service status")
    shop.look()
    shop.wait_for(lambda: any(mark.startswith(f"comment-{comment}-report") for mark in shop.bodies(number)))
    assert len(github.comments(number)) == 7


@pytest.mark.ruling("L2", "L3", "L5")
@pytest.mark.long
def test_killed_at_every_step_each_fact_is_told_once_and_each_command_acts_once(shop: Shop) -> None:
    github, number = shop.github, shop.number
    shop.script.answers(none={"delegations": [leg("one", "ask")]} | ASKS, answered={"decision": "approved"})
    words = ("agent", "ask", "lead", "Ask me", "--repo", "acme/shop", "--pr", str(number))
    root = str(shop.service.json(*words)["job_id"])
    for _ in range(2):
        github.delay("POST *", 1.0)
        shop.service.kill("github")
    shop.wait_for(lambda: f"{root}-r1-pause" in shop.bodies())
    comment = github.comment(as_="ann", number=number, body="/service resume answer red")
    shop.look()
    shop.service.kill("github")
    shop.wait_for(lambda: ("our-service[bot]", "+1") in github.reactions(comment))
    shop.service.wait_until_ended(root)
    shop.wait_for(lambda: any(mark.endswith("-end") for mark in shop.bodies()) and shop.written())
    marks = [fact_in(body) for body in github.bodies(number)]
    assert len(marks) == len(set(marks)) == 4, marks
    events = shop.service.json("job", "events", root)
    assert [event["kind"] for event in events].count("resume_accepted") == 1


@pytest.mark.long
@pytest.mark.parametrize("github", ["hub"], indirect=True)
@pytest.mark.ruling("L2", "L3", "L5", "L6")
def test_killed_ten_times_at_moments_of_chance_all_is_told_and_done_once(shop: Shop) -> None:
    github, number, chance = shop.github, shop.number, random.Random(7)
    shop.script.answers(none=ASKS, answered={"delegations": [leg("one", "ask")]}, one={"decision": "approved"})
    words = ("agent", "ask", "lead", "Ask me", "--repo", "acme/shop", "--pr", str(number))
    root = str(shop.service.json(*words)["job_id"])
    comments: list[int] = []
    for time in range(10):
        github.delay(lambda request: request.writes, 0.4, times=2)
        shop.look()
        shop.wait_for_requests(chance.randint(1, 4))
        if time == 3:
            shop.wait_for(lambda: f"{root}-r1-pause" in shop.bodies())
        if time in (3, 6):
            body = f"/service resume {root} answer red" if time == 3 else "/service status"
            comments.append(github.comment(as_="ann", number=number, body=body))
            shop.look()
        shop.service.kill("github")
    shop.service.wait_until_ended(root)
    shop.look()
    shop.wait_for(lambda: shop.bodies().keys() >= {f"comment-{comments[1]}-report-{root}"})
    shop.wait_for(lambda: any(mark.endswith("-end") for mark in shop.bodies()) and shop.written())
    marks = [mark for body in github.bodies(number) if (mark := fact_in(body))]
    assert len(marks) == len(set(marks)) == 4, marks
    for comment in comments:
        assert sorted(github.reactions(comment)) == [("our-service[bot]", "+1"), ("our-service[bot]", "eyes")]
    events = shop.service.json("job", "events", root)
    assert [event["kind"] for event in events].count("resume_accepted") == 1
    assert len([run for run in github.checks(shop.head) if run["name"] == "service/gate"]) == 1


@pytest.mark.ruling("L9")
@pytest.mark.long
def test_however_often_it_is_published_and_killed_there_is_one_pull_request(shop: Shop) -> None:
    github = shop.github
    follow(github, shop.remote)
    shop.script.answers(none={"decision": "implemented", "write": {"limiter.py": "limit = 100\n"}})
    root = str(shop.service.json("agent", "implement", "dev", "Raise it", "--repo", "acme/shop")["job_id"])
    shop.service.wait_until_ended(root)
    looks, posts = arriving(github, "GET /repos/*/pulls"), arriving(github, "POST /repos/*/pulls")
    orders = [Thread(target=shop.service.run, args=("job", "publish", root)) for _ in range(2)]
    for order in orders:
        order.start()
    shop.wait_for(looks.is_set)
    assert len(shop.mine()) == 0
    shop.service.kill("github")  # its branch is pushed
    shop.wait_for(posts.is_set)
    shop.service.kill("github")  # it is opened, which is not recorded yet
    shop.wait_for(lambda: shop.mine() and shop.written())
    for order in orders:
        order.join()
    for _ in range(2):
        assert shop.mine()[0]["html_url"] in shop.service("job", "publish", root).stdout
    (made,) = shop.mine()
    assert made["state"] == "open"
    assert made["head"]["sha"] == git(shop.remote, "rev-parse", made["head"]["ref"]).strip()


def arriving(github: Hub, line: str) -> Event:
    """Return an event set by the first such request, which is then delayed."""
    there = Event()

    def match(request: Request) -> bool:
        fits = fnmatchcase(request.line, line)
        if fits:
            there.set()
        return fits

    github.delay(match, 2.0)
    return there


def follow(github: Hub, remote: Path) -> None:
    """Mirror pushes to the remote onto GitHub."""
    known: dict[str, str] = {}
    answered = github.respond

    def respond(request: Request) -> Reply:
        shown = git(remote, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads/service")
        for branch, commit in (line.split() for line in shown.splitlines()):
            if known.get(branch) != commit:
                known[branch] = commit
                github.push(branch, commit)
        return answered(request)

    github.respond = respond  # type: ignore[method-assign]


TRACES = (
    "PYTHONASYNCIODEBUG",
    "PYTHONDEVMODE",
    "GIT_TRACE",
    "GIT_TRACE_CURL",
    "GIT_CURL_VERBOSE",
    "GIT_TRACE_CURL_NO_DATA",
)
SNOOP = """
import json, os, pathlib, sys
seen = [sys.stdin.read(), json.dumps(dict(os.environ))]
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        line = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
        if "daemon" not in line and "pytest" not in line and "bridge.github" not in line:
            seen += [line, pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace")]
    except OSError:
        pass
pathlib.Path(os.environ["PROOF"]).write_text("\\n".join(seen))
print(json.dumps({"service_result": {"decision": "approved", "summary": "looked around"}}))
"""


@pytest.mark.ruling("L2")
@pytest.mark.long
def test_the_token_is_nowhere_but_where_it_is_used(hub: Hub, installed: Installed) -> None:
    """Checks that no agent, no environment and no file of the home has it, also with all tracing on."""
    token, number = hub.user("helper", role="write"), hub.pull()
    installed.extra.update(dict.fromkeys(TRACES, "1"), OUR_TOKEN=token)
    (program := installed.tmp / "snoop.py").write_text(SNOOP)
    installed.agent("snoop", f"exec {sys.executable} {program}")
    with (installed.home / "config.toml").open("a") as config:
        config.write(f'[github]\ntoken_env = "OUR_TOKEN"\napi_url = "{hub.address}"\ncheck = true\n')
    remote = installed.tmp / "tool.git"
    git(installed.repo, "init", "-q", "--bare", "-b", "main", str(remote))
    git(installed.repo, "remote", "add", "origin", str(remote))
    git(installed.repo, "push", "-q", "origin", "main", "main:refs/pull/1/head")
    hub.push_head(number, git(installed.repo, "rev-parse", "main").strip())
    installed("repo", "add", "acme/shop", str(installed.repo), "--github", "acme/tool")
    installed("daemon", "start")
    root = installed.json("agent", "ask", "snoop", "Look around", "--repo", "acme/shop", "--pr", str(number))["job_id"]
    installed.wait_until_ended(root)
    installed.wait_for(lambda: any("-end" in body for body in hub.bodies(number)))
    hub.revoke(token)  # errors are written too
    account.want_reading(installed.seen.store)
    installed.wait_for(lambda: account.read(installed.seen.store).problem)
    installed("daemon", "status")
    assert "looked around" in hub.bodies(number)[-1]
    assert "OUR_TOKEN" not in installed.proof
    assert token not in installed.proof
    installed.wait_for(lambda: not list((installed.home / "trash").glob("*")))
    holding = [path for path in installed.home.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert holding == []
    for words in (("doctor",), ("github", "status"), ("config", "show"), ("daemon", "status"), ("job", "show", root)):
        done = installed.run(*words)
        assert token not in done.stdout + done.stderr, words


@pytest.mark.long
def test_without_an_account_no_such_process_runs(installed: Installed) -> None:
    installed("daemon", "start")
    assert "github" not in installed("daemon", "status").stdout
    assert subprocess.run(["pgrep", "-f", f"bridge.github.*{installed.home}"], check=False).returncode == 1
