"""`service github`: the account's status, a look on demand, previews of comments (rulings L2, L7)."""

import json
import re
import threading
import time
from typing import Any

import pytest

from activities.settings import ready
from activities.settings.home import Home
from activities.store import branch_rows
from activities.store.github import account, facts, threads
from activities.store.github.threads import CommentRow
from activities.store.registry import repo_rows
from bridge.operations.github import account as github
from bridge.operations.github import tree as github_tree
from bridge.operations.service import Service
from cli.main import main
from tests.bridge import github_seeds, seeds
from tests.bridge.github_seeds import SETTINGS, SHOP
from tests.waiting import wait_for
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("L2", "L7")


@pytest.fixture
def service(home: Home) -> Service:
    """Create a service with an account, one repository that is read, and a running process: this one."""
    home.config.write_text(SETTINGS)
    made = Service(home)
    seeds.write(made, seeds.task(title="Limit it"), seeds.job())
    github_seeds.thread(made)
    ready.say(home.github_ready, made.reading.in_use())
    return made


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["sync"], ["sync", SHOP, "--retry"]])
def test_without_an_account_it_is_refused_and_says_how_to_set_one_up(
    home: Home, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(["github", *words]) == 3
    errors = capsys.readouterr().err
    assert "no GitHub account is set up" in errors
    assert f"set [github].token_env in {home.config}" in errors


def test_the_status_tells_all_of_it(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    store, now = service.store, time.time()
    account.note(store, login="desk", kind="user", seen_at=now, quota=5000, remaining=4321, reset_at=now + 60)
    account.note(store, problem="GitHub answers 502", failing_since=now - 5, blocked_until=now + 60)
    account.note_reading(store, SHOP, polled_at=now - 120)
    for free, wrote in ((False, True), (True, False), (True, False)):
        account.count(store, SHOP, free=free, wrote=wrote)
    account.count(store, "", free=False, wrote=False)
    github_seeds.fact(service, "waits", next_at=now + 60)
    github_seeds.fact(service, "pushed", number=0, kind="publish", state=facts.PUSH)
    github_seeds.failed(service, "failed")
    threads.take_comments(store, [CommentRow(1, SHOP, 7, "ann", now - 60)])
    threads.settle_comment(store, 1, threads.REFUSED, "no round is open")
    assert main(["github", "status"]) == 0
    shown = re.sub(r"\d+s ago", "0s ago", capsys.readouterr().out)
    for words in (
        "desk, a user, seen 0s ago",
        "4321 of 5000 requests until ",
        "GitHub answers 502",
        f"{SHOP}   2m ago     yes       1 counted, 2 free, 1 written",
        "2 counted, 2 free, 1 written",
        f"{SHOP}#7  {seeds.ROOT}  Limit it",
        f"1m ago   {SHOP}#7  ann  refused  no round is open",
        "2 to be written, 1 could not be written",
        f"failed  end on {SHOP}#7  failed, 0s ago: GitHub answers 403: no",
        f"push  publish on {SHOP}  pushed, 0s ago",
        "service github sync --retry",
    ):
        assert words in shown, shown
    assert main(["github", "status", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["account"]["remaining"] == 4321
    assert document["repos"][0]["github"] == SHOP
    assert document["repos"][0]["requests"]["hour"] == {"counted": 1, "free": 2, "written": 1}
    assert document["threads"][0]["number"] == 7
    assert [each["fact_id"] for each in document["failed"]] == ["failed"]
    assert document["process"] is not None


def test_the_last_delivery_of_a_webhook_is_shown(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["github", "status"]) == 0
    assert "webhook" not in capsys.readouterr().out
    service.home.config.write_text(f'{SETTINGS}webhook_secret_env = "HOOK"\n')
    assert main(["github", "status"]) == 0
    assert "webhook    nothing was delivered yet" in capsys.readouterr().out
    for number, event in enumerate(("ping", "issue_comment")):
        account.is_new_delivery(service.store, f"d-{number}", event)
    assert main(["github", "status"]) == 0
    assert re.search(r"^webhook    issue_comment was delivered \d+s ago$", capsys.readouterr().out, re.MULTILINE)


def test_requests_of_other_hours_are_not_of_this_one(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for ago in (0, 5 * 3600, 30 * 3600):
        monkeypatch.setattr(time, "time", lambda ago=ago: now - ago)
        account.count(service.store, SHOP, free=False, wrote=False)
    monkeypatch.setattr(time, "time", lambda: now)
    report = github.status(service)
    assert (report.requests.hour.counted, report.requests.day.counted) == (1, 2)


def test_a_sync_waits_until_the_process_has_looked(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    def looks() -> None:
        wait_for(lambda: account.readings(service.store)[0].wanted_at > 0, "the wish")
        account.note_reading(service.store, SHOP, polled_at=time.time())

    thread = threading.Thread(target=looks)
    thread.start()
    assert main(["github", "sync", SHOP]) == 0
    thread.join()
    assert f"{SHOP} was read " in capsys.readouterr().out


def test_a_sync_does_not_wait_for_ever(service: Service) -> None:
    done = github.sync(service, None, retry=False, drop=False, wait=0.0)
    assert [each.github for each in done.late] == [SHOP]
    assert done.looked == ()


def test_a_sync_says_why_github_is_not_asked_now(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    account.note(service.store, problem="the quota is used up, until 12:00", blocked_until=time.time() + 600)
    assert main(["github", "sync"]) == 0
    shown = capsys.readouterr().out
    assert f"{SHOP} is still to be read" in shown
    assert "GitHub is not asked now: the quota is used up, until 12:00" in shown


def test_a_sync_without_the_process_is_refused_and_changes_nothing(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    service.home.github_ready.unlink()
    github_seeds.failed(service, "one")
    assert main(["github", "sync", "--retry"]) == 5
    assert "service daemon status" in capsys.readouterr().err
    assert [each.fact_id for each in facts.failures(service.store)] == ["one"]


def test_a_repository_of_which_nothing_is_read_is_said(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    repo_rows.put(service.store, "mine/other", "/srv/other", "here", "acme/other")
    assert main(["github", "sync", "mine/other"]) == 3
    assert "nothing of acme/other is read now" in capsys.readouterr().err
    assert main(["github", "sync", "acme/unknown"]) == 4


def test_what_failed_is_tried_again_or_left(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    for name, where in (("one", SHOP), ("two", "acme/other")):
        github_seeds.failed(service, name, github=where)
    account.note_reading(service.store, SHOP, polled_at=time.time() + 600)
    assert main(["github", "sync", SHOP, "--retry"]) == 0
    assert "1 that had failed: tried again" in capsys.readouterr().out
    first = facts.get(service.store, "one")
    assert first is not None
    assert (first.state, first.attempts) == (facts.OPEN, 0)
    assert main(["github", "sync", "--drop"]) == 0
    assert "1 that had failed: dropped" in capsys.readouterr().out
    assert facts.failures(service.store) == []
    assert main(["github", "sync", "--drop", "--retry"]) == 2


def test_comments_are_shown_as_they_would_be_written_without_an_account(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(home)
    seeds.paused(service)
    assert main(["github", "comment-preview", seeds.ROOT]) == 0
    shown = capsys.readouterr().out
    assert f"--- {seeds.ROOT}-status (status)" in shown
    assert f"--- {seeds.ROOT}-r1-pause (pause)" in shown
    assert f"<!-- service:{seeds.ROOT}-status -->" in shown
    assert main(["github", "comment-preview", seeds.ROOT, "--fact", f"{seeds.ROOT}-r1-pause", "--json"]) == 0
    [one] = json.loads(capsys.readouterr().out)
    assert one["body"].endswith(f"<!-- service:{seeds.ROOT}-r1-pause -->")
    assert main(["github", "comment-preview", seeds.ROOT, "--fact", "nonsense"]) == 4
    assert f"{seeds.ROOT}-status" in capsys.readouterr().err
    assert main(["github", "comment-preview", "job-000000000000"]) == 4


def test_the_end_shows_the_result_and_what_was_merged(home: Home) -> None:
    service = Service(home)
    done: dict[str, Any] = {"state": JobState.SUCCEEDED, "ended_at": 5.0}
    leg = seeds.job(f"{seeds.ROOT}.1", delegation_id="one", branch="service/one", action="implement", **done)
    merged = BranchEvent(actor="ann", branch="service/one", head_sha="a" * 40, task_branch="service/t", merged=True)
    seeds.write(
        service,
        seeds.task(state=TaskState.DONE, ended_at=6.0),
        seeds.job(**done),
        leg,
        seeds.event(2, kind="tree_ended"),
    )
    branch_rows.record(service.store, BranchEventKind.MERGED, leg.job_id, merged, "merged")
    seeds.payload(service, seeds.ROOT, {"service_result": {"decision": "approved", "summary": "All is well."}})
    tree = github_tree.bound_tree(service, seeds.ROOT)
    assert tree is not None
    assert {*tree.merged} == {"service/one"}
    assert tree.bounds == service.settings.snapshot().bounds
    [end] = [each for each in github_tree.comments(service, seeds.ROOT) if each.kind == "end"]
    assert "All is well." in end.body
