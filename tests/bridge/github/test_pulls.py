"""The pull request of a branch: exactly one, despite crashes and concurrent processes (ruling L9)."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.github import api
from activities.github.client import AwayError, Client
from activities.github.models import Pull
from activities.settings.home import Home
from activities.store.github import facts, threads
from bridge.github import publishing, writing
from bridge.github.session import Later, Never, Wrote
from bridge.github.writing import body_of
from bridge.operations.branches import publish
from tests.bridge import seeds
from tests.bridge.published import FACT, LEGS, SHOP, TASK_BRANCH, Scene, scene
from tests.bridge.seeds import ROOT
from workflows.contract.models import Action
from workflows.github.facts import marker, status_id
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("L9")
POST = "POST /repos/acme/shop/pulls"


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Iterator[Scene]:
    with scene(home, tmp_path) as made:
        yield made


async def pushed(tree: Scene, job_id: str = ROOT, state: TaskState = TaskState.DONE, **asked: Any) -> str:
    """Seed a tree whose work is pushed, and which wants a pull request; return the commit."""
    tree.task(state)
    running = {"state": JobState.RUNNING, "ended_at": None, "head_sha": None} if state is TaskState.OPEN else {}
    commit = tree.run(job_id, **running)
    publish.publish(tree.service, job_id, actor="ann, in the terminal", **asked)
    await push(tree, f"{job_id}-publish")
    return commit


async def push(tree: Scene, fact_id: str = FACT) -> None:
    """Push, and update the Hub."""
    with tree.session() as session:
        await publishing.push(session, fact_id)
    for branch, commit in tree.there().items():
        if branch.startswith("service/"):
            tree.hub.push(branch, commit)


async def write(tree: Scene, fact_id: str = FACT) -> Wrote:
    """Take one turn as a process with the account."""
    store = tree.service.store
    fact = facts.get(store, fact_id)
    assert fact
    with tree.session() as session:
        wrote = await publishing.open_pull(session, fact)
    facts.mark_written(store, fact_id, github_id=wrote.github_id, url=wrote.url, digest=wrote.digest)
    return wrote


async def ended(tree: Scene) -> None:
    """End the tree, and declare the update."""
    tree.job(revision=2)
    tree.task(revision=20)
    with tree.session() as session:
        assert publishing.is_news(tree.service, time.time())
        publishing.declare(session)
    assert tree.fact.state == "push"
    await push(tree)


def said(tree: Scene) -> dict[str, Any]:
    (pull,) = tree.hub.pulls()
    return pull


async def test_the_result_is_its_text_and_harmless(tree: Scene) -> None:
    commit = await pushed(tree)
    wrote = await write(tree)
    answer = said(tree)
    assert (answer["title"], answer["draft"], answer["base"]["ref"]) == ("Make it work", False, "main")
    assert (answer["head"]["ref"], answer["head"]["sha"]) == (TASK_BRANCH, commit)
    assert "It works now." in answer["body"]
    assert "see @\u200bann in #\u200b12" in answer["body"]
    assert answer["body"].endswith(marker(FACT))
    assert (wrote.github_id, wrote.url) == (str(answer["number"]), answer["html_url"])
    shown = publish.current(tree.service, ROOT)
    assert shown is not None
    assert (shown.state, shown.url, shown.commit, shown.says) == ("done", answer["html_url"], commit, "")


@pytest.mark.ruling("L3", "L9")
async def test_it_names_the_thread_it_was_asked_for_on_and_is_named_there(tree: Scene) -> None:
    tree.task()
    tree.run(pull_request=7)
    status = facts.FactRow(status_id(ROOT), "status", ROOT, SHOP, 7, state=facts.DONE, github_id="1", digest="old")
    end = replace(status, fact_id=f"{ROOT}-e5-end", kind="end")
    facts.declare(tree.service.store, [status, end])
    threads.bind_new(tree.service.store)
    threads.advance(tree.service.store, ROOT, 5, over=False)
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    with tree.session() as session:
        assert await writing.write_one(session) == [f"wrote publish on {SHOP}#7"]
        again = facts.get(tree.service.store, status_id(ROOT))
        assert again is not None
        assert again.state == facts.OPEN, "its comment is written anew"
        assert facts.get(tree.service.store, end.fact_id).state == facts.OPEN, "so is the end's"  # type: ignore[union-attr]
        assert [each.root_job_id for each in threads.open_ones(tree.service.store) if each.told_seq < 0] == [ROOT]
        assert f"Published as {said(tree)['html_url']}" in body_of(session, again).text
    assert "asked for on #7" in said(tree)["body"]


@pytest.mark.ruling("L11")
async def test_secrets_and_too_much_of_it_are_cut(tree: Scene) -> None:
    await pushed(tree)
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
    huge = {"decision": "implemented", "summary": f"it is {secret}", "findings": [f"{n} é" * 500 for n in range(90)]}
    seeds.payload(tree.service, ROOT, {"service_result": huge}, attempt=2)
    tree.task(revision=11, title=f"@bob/x {secret}\nclose #3 " + "y" * 300)
    await write(tree)
    answer = said(tree)
    assert len(answer["body"].encode()) <= 60_000
    assert len(answer["title"]) < 256
    assert secret not in str(answer)
    assert "\n" not in answer["title"]
    assert answer["title"].startswith("@\u200bbob/x")
    assert answer["body"].endswith(marker(FACT))


async def test_eight_at_once_make_one(tree: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them have looked and found none before the first one writes."""
    await pushed(tree)
    real, all_looked, looks = api.pulls_of, asyncio.Barrier(8), iter(range(8))

    async def looked(client: Client, github: str, branch: str) -> list[Pull]:
        known = await real(client, github, branch)
        if next(looks, None) is not None:
            await all_looked.wait()
        return known

    monkeypatch.setattr(api, "pulls_of", looked)
    done = await asyncio.gather(*(write(tree) for _ in range(8)), return_exceptions=True)
    assert len(tree.hub.pulls()) == 1
    assert [each for each in done if isinstance(each, BaseException) and not isinstance(each, Later)] == []
    assert tree.fact.url == said(tree)["html_url"]
    posts = [each.status for each in tree.hub.requests if each.line == POST]
    assert sorted(posts) == [201] + [422] * 7


@pytest.mark.parametrize("how", ["502", "cut"])
async def test_who_dies_between_post_and_record_makes_no_second_one(tree: Scene, how: Any) -> None:
    await pushed(tree)
    tree.hub.after_write(POST, how)
    with pytest.raises(AwayError):
        await write(tree)
    assert tree.fact.url == "", "it is not known what came of it"
    await write(tree)
    assert tree.fact.url == said(tree)["html_url"]
    assert tree.hub.lines().count(POST) == 1
    tree.task(revision=12)
    seeds.payload(tree.service, ROOT, {"service_result": {"decision": "implemented", "summary": "Better."}}, attempt=2)
    await write(tree)
    assert "Better." in said(tree)["body"], "its text is still known as ours"


async def test_who_dies_before_the_record_finds_it_again(tree: Scene) -> None:
    await pushed(tree)
    for _ in range(3):
        with tree.session() as session:
            wrote = await publishing.open_pull(session, tree.fact)
    assert wrote.url == said(tree)["html_url"]
    assert tree.hub.lines().count(POST) == 1


async def test_while_the_tree_runs_it_is_a_draft_and_ready_at_the_end(tree: Scene) -> None:
    await pushed(tree, state=TaskState.OPEN)
    await write(tree)
    assert said(tree)["draft"]
    assert "still at work" in said(tree)["body"]
    shown = publish.current(tree.service, ROOT)
    assert shown is not None
    assert shown.says == "a draft until the task is done"
    assert not publishing.is_news(tree.service, time.time())
    await ended(tree)
    with pytest.raises(Later):  # one write a turn
        await write(tree)
    assert said(tree)["draft"]
    await write(tree)
    assert not said(tree)["draft"]
    assert "It works now." in said(tree)["body"]
    assert "still at work" not in said(tree)["body"]
    assert not publishing.is_news(tree.service, time.time())
    before = len(tree.hub.writes())
    await write(tree)
    assert len(tree.hub.writes()) == before, "done again, it changes nothing"


async def test_a_draft_of_somebody_elses_stays_one(tree: Scene) -> None:
    await pushed(tree)
    tree.hub.pull(TASK_BRANCH, draft=True, title="Mine", body="my own words")
    await write(tree)
    answer = said(tree)
    assert (answer["draft"], answer["title"], answer["body"]) == (True, "Mine", "my own words")


async def test_who_made_it_a_draft_again_keeps_it_so(tree: Scene) -> None:
    await pushed(tree, state=TaskState.OPEN)
    await write(tree)
    await ended(tree)
    with pytest.raises(Later):
        await write(tree)
    await write(tree)
    pull = tree.hub.repository().issues[said(tree)["number"]].pull
    assert pull
    pull.draft = True
    facts.again(tree.service.store, FACT)
    await write(tree)
    assert said(tree)["draft"]


async def test_a_tree_that_did_not_end_well_leaves_a_draft_that_says_so(tree: Scene) -> None:
    await pushed(tree, state=TaskState.OPEN)
    await write(tree)
    tree.task(TaskState.CANCELLED, revision=20, reason="killed by ann", ended_at=30.0)
    with tree.session() as session:
        publishing.declare(session)
    await push(tree)
    await write(tree)
    assert said(tree)["draft"]
    assert "The task ended cancelled. killed by ann" in said(tree)["body"]


async def test_where_there_are_no_drafts_it_is_none(tree: Scene) -> None:
    await pushed(tree, state=TaskState.OPEN)
    why = {"message": "Validation Failed", "errors": ["Draft pull requests are not supported in this repository."]}
    tree.hub.fail(POST, status=422, body=why)
    with pytest.raises(Later):
        await write(tree)
    await write(tree)
    assert not said(tree)["draft"]


async def test_what_somebody_wrote_into_it_is_left_alone(tree: Scene) -> None:
    await pushed(tree, state=TaskState.OPEN)
    await write(tree)
    number, theirs = said(tree)["number"], said(tree)["body"].replace("still at work", "STILL at work")
    tree.hub.ask("PATCH", f"/repos/{SHOP}/pulls/{number}", {"body": theirs, "title": "Better"}, "acme")
    await ended(tree)
    await write(tree)
    assert (said(tree)["body"], said(tree)["title"], said(tree)["draft"]) == (theirs, "Better", False)


async def test_github_may_write_other_line_ends(tree: Scene) -> None:
    await pushed(tree, state=TaskState.OPEN)
    await write(tree)
    number, same = said(tree)["number"], said(tree)["body"].replace("\n", "\r\n")
    tree.hub.ask("PATCH", f"/repos/{SHOP}/pulls/{number}", {"body": same}, "acme")
    await ended(tree)
    with pytest.raises(Later):
        await write(tree)
    assert "It works now." in said(tree)["body"]


@pytest.mark.parametrize("merged", [True, False])
async def test_one_that_is_over_with_the_same_work_is_enough(tree: Scene, merged: bool) -> None:
    commit = await pushed(tree)
    number = tree.hub.pull(TASK_BRANCH)
    tree.hub.push(TASK_BRANCH, commit)
    if merged:
        assert tree.hub.merge(number) == 200
    else:
        tree.hub.close(number)
    before = len(tree.hub.writes())
    await write(tree)
    assert len(tree.hub.writes()) == before
    shown = publish.current(tree.service, ROOT)
    assert shown is not None
    assert shown.url == said(tree)["html_url"]
    word = "merged already" if merged else "was closed"
    assert word in shown.says


async def test_one_that_is_over_with_older_work_is_followed_by_another(tree: Scene) -> None:
    commit = await pushed(tree)
    old = tree.hub.pull(TASK_BRANCH)
    tree.hub.close(old)
    tree.hub.push(TASK_BRANCH, commit)
    await write(tree)
    assert [each["state"] for each in tree.hub.pulls()] == ["open", "closed"]


async def test_the_base_is_what_was_asked_for(tree: Scene) -> None:
    tree.hub.push("stable")
    await pushed(tree, base="stable")
    await write(tree)
    assert said(tree)["base"]["ref"] == "stable"


async def test_the_base_of_one_that_is_open_is_peoples(tree: Scene) -> None:
    await pushed(tree)
    await write(tree)
    tree.hub.push("stable")
    publish.publish(tree.service, ROOT, actor="ann, in the terminal", base="stable")
    await push(tree)
    await write(tree)
    assert said(tree)["base"]["ref"] == "main"
    shown = publish.current(tree.service, ROOT)
    assert shown is not None
    assert "goes into main, not stable" in shown.says


async def test_who_ordered_it_and_where_this_machine_listens_is_nobodys_business(tree: Scene) -> None:
    await pushed(tree)
    await write(tree)
    assert "ann" not in said(tree)["body"].replace("@\u200bann", "")
    assert "127.0.0.1" not in said(tree)["body"]
    assert f"`service job tree {ROOT}`" in said(tree)["body"]


async def test_a_base_that_is_not_there_is_said(tree: Scene) -> None:
    await pushed(tree, base="stable")
    with pytest.raises(
        Never, match=r"has no branch stable to merge it into; to go on: service job publish .* --base BRANCH"
    ):
        await write(tree)


async def test_a_tree_of_a_pull_request_goes_into_its_branch(tree: Scene) -> None:
    number = tree.hub.pull("topic")
    tree.task()
    tree.run(pull_request=number)
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    await write(tree)
    assert [each["base"]["ref"] for each in tree.hub.pulls()] == ["topic", "main"]


async def test_of_one_that_is_over_into_the_default_branch(tree: Scene) -> None:
    number = tree.hub.pull("topic")
    tree.hub.close(number)
    tree.task()
    tree.run(pull_request=number)
    publish.publish(tree.service, ROOT, actor="ann, in the terminal")
    await push(tree)
    await write(tree)
    assert tree.hub.pulls()[0]["base"]["ref"] == "main"


async def test_a_leg_says_which_it_is(tree: Scene) -> None:
    tree.job(action=Action.ASK)
    tree.task()
    tree.run(LEGS["a"], delegation_id="fix", summary="done")
    publish.publish(tree.service, LEGS["a"], actor="ann, in the terminal")
    await push(tree, f"{LEGS['a']}-publish")
    await write(tree, f"{LEGS['a']}-publish")
    assert (said(tree)["title"], said(tree)["head"]["ref"]) == ("Make it work: fix", f"service/{LEGS['a']}")


async def test_what_adds_nothing_is_said(tree: Scene) -> None:
    await pushed(tree)
    tree.hub.push(TASK_BRANCH, tree.hub.repository().branches["main"])
    with pytest.raises(Never, match=f"nothing to publish: all of {TASK_BRANCH} is in main already"):
        await write(tree)


async def test_a_branch_that_github_does_not_know_yet_is_waited_for(tree: Scene) -> None:
    await pushed(tree)
    commit = tree.hub.repository().branches.pop(TASK_BRANCH)
    with pytest.raises(Later):
        await write(tree)
    tree.hub.push(TASK_BRANCH, commit)
    await write(tree)
    assert len(tree.hub.pulls()) == 1
