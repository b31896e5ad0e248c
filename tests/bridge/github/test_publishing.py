"""Pushes of branches to GitHub: automatic or ordered, retried, given up with the reason (ruling L9)."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.settings.home import Home
from activities.store.github import account, facts
from activities.store.registry import repo_rows
from bridge.github import publishing
from bridge.operations.branches import publish
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import seeds
from tests.bridge.published import FACT, LEGS, SHOP, TASK_BRANCH, Scene, scene
from tests.bridge.seeds import ROOT
from workflows.contract.models import Action
from workflows.model.errors import RefusedError
from workflows.model.event_kinds import EventKind
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("L9")


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Iterator[Scene]:
    with scene(home, tmp_path) as made:
        made.task()
        yield made


@pytest.fixture
def by_itself(home: Home, tmp_path: Path) -> Iterator[Scene]:
    """Open a service that has published successful trees since before this tree ended."""
    with scene(home, tmp_path, "on_success") as made:
        facts.publish_in(made.service.store, [SHOP], 1.0)
        yield made


def declare(tree: Scene) -> None:
    with tree.session() as session:
        publishing.declare(session)


def declared(tree: Scene) -> bool:
    declare(tree)
    return facts.get(tree.service.store, FACT) is not None


async def push(tree: Scene, fact_id: str = FACT) -> None:
    with tree.session() as session:
        await publishing.push(session, fact_id)


async def test_the_commit_is_pushed_and_pinned(tree: Scene) -> None:
    commit = tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    assert tree.there()[TASK_BRANCH] == commit
    assert (tree.fact.state, tree.fact.attempts, tree.fact.error) == ("open", 0, "")
    assert publish.publication(tree.fact).commit == commit
    await push(tree)
    assert tree.hub.writes() == []


async def test_nothing_is_written_of_it_before_it_is_pushed(tree: Scene) -> None:
    tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    store, later = tree.service.store, time.time() + 1
    assert facts.next_due(store, later) is None
    assert facts.waiting_until(store) == 0.0
    assert publishing.is_news(tree.service, later)
    assert [each.fact_id for each in publishing.to_push(store, later)] == [FACT]
    assert not publishing.is_news(tree.service, later)
    assert [each.fact_id for each in facts.waiting(store)] == [FACT]
    await push(tree)
    due = facts.next_due(store, later)
    assert due is not None
    assert due.fact_id == FACT


async def test_what_was_pushed_is_not_pushed_again(tree: Scene) -> None:
    commit = tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    run_git(tree.repo, "branch", TASK_BRANCH, commit)
    run_git(tree.repo, "checkout", "-q", TASK_BRANCH)
    commit_file(tree.repo, "more.txt", "more\n")
    await push(tree)
    assert tree.there()[TASK_BRANCH] == commit, "only who asks again has more pushed"


async def test_who_pushed_there_first_keeps_it(tree: Scene) -> None:
    tree.run()
    run_git(tree.repo, "checkout", "-q", "-b", "theirs", "main")
    theirs = commit_file(tree.repo, "theirs.txt", "theirs\n")
    run_git(tree.repo, "push", "-q", "origin", f"theirs:{TASK_BRANCH}")
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    assert tree.there()[TASK_BRANCH] == theirs
    assert tree.fact.state == "failed"
    assert f"somebody else pushed to {TASK_BRANCH}" in tree.fact.error


@pytest.mark.parametrize("how", ["default", "protected"])
async def test_a_default_or_protected_branch_is_never_pushed(tree: Scene, how: str) -> None:
    tree.run()
    tree.hub.push(TASK_BRANCH)
    if how == "default":
        tree.hub.repository().default_branch = TASK_BRANCH
    else:
        tree.hub.protect(TASK_BRANCH)
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    assert TASK_BRANCH not in tree.there()
    assert tree.fact.state == "failed"
    assert how in tree.fact.error


async def test_what_may_pass_is_tried_again_later_and_given_up_in_the_end(tree: Scene) -> None:
    tree.run()
    tree.bare.rename(tree.bare.with_name("away"))
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    now, waits = time.time(), []
    while tree.fact.state == "push":
        before, now = now, max(now, tree.fact.next_at)
        waits.append(round(now - before))
        for fact in publishing.to_push(tree.service.store, now):
            assert publishing.to_push(tree.service.store, now) == [], "it is handed out once"
            await push(tree, fact.fact_id)
    assert waits == [0, 60, 120, 240, 480, 960, 1920, 3840, 7680]
    assert tree.fact.state == "failed"
    assert "does not appear to be a git repository" in tree.fact.error
    tree.bare.with_name("away").rename(tree.bare)
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    assert tree.fact.state == "open"


async def test_a_github_that_is_away_or_wants_to_be_left_alone_is_waited_for(tree: Scene) -> None:
    tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    tree.hub.secondary_limit("GET /repos/acme/shop", retry_after=900)
    await push(tree)
    assert tree.fact.next_at == pytest.approx(time.time() + 900, abs=60)
    assert account.read(tree.service.store).blocked_until == tree.fact.next_at
    tree.hub.down()
    await push(tree)
    assert (tree.fact.state, tree.fact.error) == ("push", "GitHub cannot be reached: ConnectError")
    tree.hub.up()
    await push(tree)
    assert tree.fact.state == "open"


@pytest.mark.parametrize("url", ["https://ann:{}@127.0.0.1:1/acme/shop.git", "ssh://git:{}@127.0.0.1:1/acme/shop.git"])
async def test_a_remote_with_a_password_in_its_address_is_never_shown(
    tree: Scene, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hunter2hunter2"
    run_git(tree.repo, "remote", "set-url", "origin", url.format(secret))
    tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    assert tree.fact.error
    assert secret not in f"{tree.fact} {publish.current(tree.service, ROOT)} {caplog.text}"
    assert tree.hub.tokens["acme"] not in f"{tree.fact} {caplog.text}"


async def test_a_checkout_on_another_host_is_pushed_there(tree: Scene) -> None:
    tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    repo_rows.put(tree.service.store, SHOP, "/srv/shop", "far", SHOP)
    await push(tree)
    assert (tree.fact.state, tree.fact.host, tree.fact.next_at) == ("push", "far", 0.0)


@pytest.mark.ruling("Q3.work")
async def test_with_a_remote_the_host_with_the_account_pushes_for_all(tree: Scene, tmp_path: Path) -> None:
    commit, store = tree.run(), tree.service.store
    run_git(tree.repo, "push", "-q", str(tree.bare), "refs/heads/service/*:refs/service/*")
    repo_rows.remove(store, SHOP)
    repo_rows.put(store, SHOP, "", "", SHOP, repo_rows.Remote(str(tree.bare), "main", "refs/service/"))
    other = Service(Home(tmp_path / "web-2").ensure())
    other.home.config.write_text(f'[worker]\nhost = "web-2"\n[store]\nurl = "sqlite:///{tree.service.home.store}"\n')
    with pytest.raises(RefusedError, match="GitHub is not set up"):
        publish.publish(other, ROOT, actor="ann, in the terminal")
    account.note(store, login="acme", seen_at=time.time())
    assert publish.publish(other, ROOT, actor="ann, in the terminal").says == "it is being pushed"
    other.store.dispose()
    with tree.session() as session:
        assert publishing.pusher(session, tree.fact) == tree.fact.host == tree.service.settings.host
    await push(tree)
    assert (tree.fact.state, tree.there()[TASK_BRANCH]) == ("open", commit)


async def test_a_branch_that_is_gone_since_stays_as_it_was_pushed(tree: Scene) -> None:
    commit = tree.run()
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    run_git(tree.repo, "branch", "-q", "-D", f"service/{ROOT}")
    facts.again(tree.service.store, FACT, state=facts.PUSH)
    await push(tree)
    assert tree.fact.state == "open"
    assert publish.publication(tree.fact).commit == commit


def test_a_tree_that_ended_well_is_published_by_itself_once(by_itself: Scene) -> None:
    by_itself.task(TaskState.OPEN, revision=1)
    by_itself.run()
    assert not declared(by_itself)
    by_itself.task()
    assert publishing.is_news(by_itself.service, time.time())
    assert declared(by_itself)
    fact = by_itself.fact
    assert (fact.state, fact.subject, fact.github) == ("push", TASK_BRANCH, SHOP)
    assert publish.publication(fact).actor == "[github].publish"
    publishing.to_push(by_itself.service.store, time.time())
    declare(by_itself)
    assert by_itself.fact.attempts == 1
    assert not publishing.is_news(by_itself.service, time.time())


def test_one_that_belongs_to_a_pull_request_is_too(by_itself: Scene) -> None:
    by_itself.task()
    by_itself.run(pull_request=7)
    assert declared(by_itself)
    assert by_itself.fact.number == 7


@pytest.mark.parametrize("state", [TaskState.BLOCKED, TaskState.CANCELLED, TaskState.AWAITING_HUMAN])
def test_a_tree_that_did_not_end_well_is_not(by_itself: Scene, state: TaskState) -> None:
    by_itself.task(state)
    by_itself.run()
    assert not declared(by_itself)


@pytest.mark.parametrize("fields", [{"action": Action.ASK}, {"head_sha": None}, {"state": JobState.FAILED}])
def test_a_tree_without_work_is_not(by_itself: Scene, fields: dict[str, Any]) -> None:
    by_itself.task()
    by_itself.run(**fields)
    assert not declared(by_itself)


def test_a_tree_that_a_bound_or_a_kill_has_ended_is_not(by_itself: Scene) -> None:
    by_itself.task()
    by_itself.run()
    asked: dict[str, Any] = {
        "kind": EventKind.DELEGATION_FINALIZE_ENQUEUED.value,
        "data": {"cause": "killed", "reason": "no"},
    }
    seeds.write(by_itself.service, seeds.event(3, **asked))
    assert not declared(by_itself)


def test_what_ended_before_the_repository_was_served_is_not(by_itself: Scene) -> None:
    by_itself.task()
    by_itself.run()
    facts.publish_in(by_itself.service.store, [], 0.0)
    assert not declared(by_itself)
    by_itself.task(revision=10, ended_at=time.time() + 1)
    assert declared(by_itself)


def test_what_ended_long_ago_is_looked_at_once(by_itself: Scene) -> None:
    by_itself.task(ended_at=10.0)
    by_itself.run()
    assert declared(by_itself), "the process was away for long"
    other = "job-bbbbbbbbbbbb"
    seeds.write(by_itself.service, seeds.task(other, state=TaskState.DONE, ended_at=11.0, repo=SHOP))
    by_itself.job(other, head_sha="1" * 40)
    declare(by_itself)
    assert facts.get(by_itself.service.store, f"{other}-publish") is None


def test_the_moment_it_was_served_first_stays(by_itself: Scene) -> None:
    for at in (2.0, 50.0):
        facts.publish_in(by_itself.service.store, [SHOP], at)
    by_itself.task()
    by_itself.run()
    assert declared(by_itself)


@pytest.mark.parametrize("settings", ['repos = ["acme/other"]', 'publish = "never"'])
def test_only_as_the_settings_wish(by_itself: Scene, settings: str) -> None:
    by_itself.task()
    by_itself.run()
    config = by_itself.service.home.config
    lines = [line for line in config.read_text().splitlines() if not settings.startswith(line.partition(" ")[0])]
    config.write_text("\n".join([*lines, settings]))
    other = Scene(Service(by_itself.service.home), by_itself.repo, by_itself.bare, by_itself.hub)
    assert not declared(other)


def test_a_repository_without_a_name_on_github_is_not(by_itself: Scene) -> None:
    by_itself.task()
    by_itself.run()
    repo_rows.put(by_itself.service.store, SHOP, str(by_itself.repo), by_itself.service.settings.host)
    assert not declared(by_itself)


async def test_where_nothing_is_left_it_is_no_failure_that_nobody_asked_for(by_itself: Scene) -> None:
    by_itself.task()
    by_itself.job(action=Action.ASK)
    by_itself.run(LEGS["a"], branch="service/x", delegation_id="a")
    assert declared(by_itself)
    by_itself.job(LEGS["a"], revision=2, delegation_id="a", head_sha=None)
    await push(by_itself)
    assert (by_itself.fact.state, by_itself.fact.url) == ("done", "")
    assert by_itself.fact.error.startswith("there is nothing to publish")
    declare(by_itself)
    assert by_itself.fact.state == "done"


async def test_several_branches_are_said_with_the_command_that_merges_them(by_itself: Scene) -> None:
    by_itself.task()
    by_itself.job(action=Action.ASK)
    for name in "ab":
        by_itself.run(LEGS[name], delegation_id=name)
    assert declared(by_itself)
    await push(by_itself)
    assert by_itself.fact.state == "failed"
    assert by_itself.fact.error.endswith(f"service job merge {ROOT}")
