"""A tree's pauses are told, and ended, on the pull request that its work became, too (rulings L3, L4, L9)."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from activities.store.github import facts, threads
from activities.store.github.facts import FactRow
from tests.bridge import seeds
from tests.bridge.github.conftest import Office, answers, heard
from workflows.github.facts import fact_in, pause_id, publish_id
from workflows.model.orders import ResumeOrder

pytestmark = pytest.mark.ruling("L3", "L4", "L9")

ROOT, OTHER = seeds.ROOT, "job-0123456789cd"
TOOL = "acme/tool"


def published(office: Office, pull: int, thread: int = 0, root: str = ROOT) -> None:
    """The tree's work is this pull request."""
    address = f"{office.hub.address}/{TOOL}/pull/{pull}"
    done: dict[str, Any] = {"state": facts.DONE, "github_id": str(pull), "url": address, "revision": 1}
    made = FactRow(publish_id(root), "publish", root, TOOL, thread, "service/task", at=time.time() - 1, **done)
    facts.declare(office.session.store, [made])


def asks(office: Office, root: str = ROOT, **fields: Any) -> None:
    asked = {"opened_at": time.time(), "expires_at": time.time() + 60} | fields
    seeds.write(office.service, seeds.round_(root, **asked), seeds.event(2, root, kind="round_opened"))


def running(office: Office, root: str = ROOT) -> None:
    """A tree that belongs to nothing on GitHub."""
    seeds.write(office.service, seeds.task(root), seeds.job(root), seeds.event(1, root, kind="tree_started"))


def on_issue(office: Office, number: int) -> None:
    started = seeds.event(1, kind="tree_started")
    seeds.write(office.service, seeds.task(), seeds.job(issue=number), started)


def marks(office: Office, number: int) -> list[str]:
    return [fact_in(each) or "" for each in office.hub.bodies(number)]


async def test_a_pause_is_told_on_the_thread_and_on_the_published_pull_request(office: Office) -> None:
    issue, pull = office.hub.issue(), office.hub.pull()
    on_issue(office, issue)
    published(office, pull, issue)
    asks(office)
    await office.turns()
    assert marks(office, pull) == [f"{pause_id(f'{ROOT}-r1')}-on-{pull}"], "neither its status nor its end"
    assert pause_id(f"{ROOT}-r1") in marks(office, issue)
    [body] = office.hub.bodies(pull)
    assert "A person is needed" in body
    assert "@acme" in body, "people are tagged"
    assert f"/service resume {ROOT} answer" in body


@pytest.mark.parametrize("job", ["", f"{ROOT} "])
async def test_a_comment_there_ends_it_and_both_comments_say_so(
    office: Office, resumes: list[ResumeOrder], job: str
) -> None:
    issue, pull = office.hub.issue(), office.hub.pull()
    on_issue(office, issue)
    published(office, pull, issue)
    asks(office)
    await office.turns()
    comment = office.hub.comment(as_="ann", number=pull, body=f"/service resume {job}answer red")
    await heard(office)
    assert [(order.job_id, order.round, order.text) for order in resumes] == [(ROOT, 1, "red")]
    assert [what for _, what in office.hub.reactions(comment)] == ["eyes", "+1"]
    over: dict[str, Any] = {"end": "answered", "closed": "answered by ann", "closed_at": time.time(), "revision": 2}
    seeds.write(office.service, seeds.round_(**over), seeds.event(3, kind="resume_accepted"))
    await office.turn()  # edits wait for more of their kind: the next turn is ten seconds later
    await office.turns()
    for number in (issue, pull):
        assert any("A person was asked" in each and "answered by ann" in each for each in office.hub.bodies(number))


async def test_a_tree_that_belongs_to_nothing_is_answered_on_its_own_pull_request(
    office: Office, resumes: list[ResumeOrder]
) -> None:
    pull = office.hub.pull()
    running(office)
    published(office, pull)
    asks(office)
    await office.turns()
    assert [each.partition("-r1")[0] for each in marks(office, pull)] == [ROOT], "its pause, and nothing else"
    office.hub.comment(as_="ann", number=pull, body="/service resume answer red")
    await heard(office)
    assert [(order.job_id, order.round) for order in resumes] == [(ROOT, 1)]


async def test_a_pause_that_was_open_as_it_was_published_is_told_there_too(office: Office) -> None:
    issue, pull = office.hub.issue(), office.hub.pull()
    on_issue(office, issue)
    asks(office)
    await office.turns()
    published(office, pull, issue)
    threads.look_again(office.session.store, ROOT)
    await office.turns()
    assert len(marks(office, pull)) == 1


async def test_a_stranger_there_is_refused_and_what_is_older_is_nothing(
    office: Office, resumes: list[ResumeOrder]
) -> None:
    issue, pull = office.hub.issue(), office.hub.pull()
    on_issue(office, issue)
    published(office, pull, issue)
    asks(office)
    await office.turns()
    office.hub.user("eve")
    comment = office.hub.comment(as_="eve", number=pull, body=f"/service resume {ROOT} answer red")
    long_ago = datetime.now(UTC) - timedelta(minutes=5)
    office.hub.comment(as_="ann", number=pull, body=f"/service resume {ROOT} answer red", at=long_ago)
    await heard(office)
    assert (resumes, answers(office, pull)) == ([], [f"comment-{comment}-refusal"])


async def test_on_the_pull_request_of_another_tree_it_is_discussed_elsewhere(
    office: Office, resumes: list[ResumeOrder]
) -> None:
    issue, pull = office.hub.issue(), office.hub.pull()
    on_issue(office, issue)
    asks(office)
    running(office, OTHER)
    published(office, pull, root=OTHER)
    await office.turns()
    office.hub.comment(as_="ann", number=pull, body=f"/service resume {ROOT} answer red")
    await heard(office)
    assert resumes == []
    assert "is discussed elsewhere, not on #" in office.hub.bodies(pull)[-1]


async def test_the_checks_of_a_pull_request_are_those_of_trees_that_belong_to_it(office: Office) -> None:
    pull = office.hub.pull()
    running(office)
    published(office, pull)
    await office.turns()
    store = office.session.store
    assert threads.of_number(store, TOOL, pull) == []
    assert [each.root_job_id for each in threads.of_thread(store, TOOL, pull)] == [ROOT]
