"""One comment for each fact, whatever happens between its creation and its record (rulings L2, L3, L8)."""

import asyncio
import time
from typing import Literal

import pytest
from sqlalchemy import Engine
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.store import event_rows
from activities.store.github import account, facts, threads
from activities.store.github.facts import FactRow
from activities.store.registry import repo_rows
from bridge.github import writing
from bridge.github.desk import Desk, is_news
from bridge.github.session import GithubSession
from bridge.github.writing import CommentBody, body_of
from bridge.operations.github import account as operations
from tests.bridge import seeds
from tests.bridge.github.conftest import Office, bind
from workflows.github.facts import fact_in, marker
from workflows.model.rows import EventRecord
from workflows.model.states import JobState, TaskState
from workflows.temporal.github_desk import desk_id

ROOT = seeds.ROOT


def _marks(office: Office, number: int) -> list[str | None]:
    return [fact_in(body) for body in office.hub.bodies(number)]


@pytest.mark.ruling("L1", "L3")
async def test_a_tree_has_one_status_comment_that_is_edited_as_it_goes(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status"]
    assert "running" in office.hub.bodies(number)[0]
    done = seeds.task(state=TaskState.DONE, reason="it is finished", revision=2, ended_at=time.time())
    ended = seeds.job(pull_request=number, state=JobState.SUCCEEDED, summary="all good", revision=2)
    seeds.write(office.service, done, ended, seeds.event(2, kind="tree_ended"))
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status", f"{ROOT}-e2-end"]
    assert "done" in office.hub.bodies(number)[0]


@pytest.mark.ruling("L1", "L3")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_end_of_a_tree_that_ends_while_it_is_read_is_told(
    office: Office, monkeypatch: pytest.MonkeyPatch, when: Literal["before", "after"]
) -> None:
    """It ends just before its events are read, or just after."""
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    of_tree, ends = event_rows.of_tree, ["now"]

    def end() -> None:
        done = seeds.task(state=TaskState.DONE, reason="it is finished", revision=2, ended_at=time.time())
        ended = seeds.job(pull_request=number, state=JobState.SUCCEEDED, summary="all good", revision=2)
        seeds.write(office.service, done, ended, seeds.event(3, kind="tree_ended"))

    def events(store: Engine, root: str) -> list[EventRecord]:
        now = ends.pop() if ends else ""
        if now and when == "before":
            end()
        known = of_tree(store, root)
        if now and when == "after":
            end()
        return known

    seeds.write(office.service, seeds.event(2, kind="result_ambiguous"))
    monkeypatch.setattr(event_rows, "of_tree", events)
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status", f"{ROOT}-e3-end"]
    assert facts.failures(office.session.store) == []


@pytest.mark.ruling("L3")
async def test_a_comment_that_would_say_the_same_is_not_written_again(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    before = len(office.hub.writes())
    seeds.write(office.service, seeds.event(2, kind="result_ambiguous"))
    facts.again(office.session.store, f"{ROOT}-status")
    await office.turns()
    assert len(office.hub.writes()) == before


@pytest.mark.ruling("L3")
@pytest.mark.parametrize("how", ["502", "cut"])
async def test_a_comment_whose_answer_was_lost_is_found_by_its_mark(office: Office, how: Literal["502", "cut"]) -> None:
    number = office.hub.pull()
    bind(office, number)
    office.hub.after_write("POST /repos/*/comments", how)
    lost = await office.turn()
    assert "GitHub" in lost.says
    assert lost.again is not None
    account.note(office.session.store, blocked_until=None)
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status"]
    assert facts.get(office.session.store, f"{ROOT}-status").state == facts.DONE  # type: ignore[union-attr]


@pytest.mark.ruling("L3")
async def test_two_processes_that_did_not_know_of_each_other_leave_one_comment(office: Office) -> None:
    """One process was suspended right before its write, and continued after the other had written."""
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    body = office.hub.bodies(number)[0]
    office.hub.comment(as_="helper", number=number, body=body)
    facts.again(office.session.store, f"{ROOT}-status", github_id=None, digest="")
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status"]


@pytest.mark.ruling("L3")
async def test_a_mark_that_somebody_else_typed_is_not_taken_for_ours(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    office.hub.comment(as_="ann", number=number, body=f"ha\n{marker(f'{ROOT}-status')}")
    await office.turns()
    assert [each["user"]["login"] for each in office.hub.comments(number)] == ["ann", "helper"]


@pytest.mark.ruling("L3")
async def test_a_comment_that_a_person_deleted_is_not_written_again(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    office.hub.delete_comment(office.hub.comments(number)[0]["id"])
    seeds.write(
        office.service, seeds.task(state=TaskState.DONE, revision=2, ended_at=2.0), seeds.event(2, kind="tree_ended")
    )
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-e2-end"]
    kept = facts.get(office.session.store, f"{ROOT}-status")
    assert kept is not None
    assert (kept.state, kept.error) == (facts.DROPPED, "somebody deleted the comment; it is not written again")
    assert facts.failures(office.session.store) == [], "nobody has to look at what a person did on purpose"


@pytest.mark.ruling("L6")
async def test_a_command_that_was_deleted_before_its_reaction_is_nobody_s_trouble(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    gone = office.hub.comment(as_="ann", number=number, body="/service status")
    office.hub.delete_comment(gone)
    row = facts.FactRow(f"comment-{gone}-taken", "taken", "", "acme/tool", number, str(gone))
    facts.declare(office.session.store, [row])
    await office.turns()
    assert facts.failures(office.session.store) == []


@pytest.mark.ruling("L8")
async def test_a_refused_account_is_asked_again_at_once_when_somebody_put_it_right(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart or `service github sync`; GitHub's rate limits are still respected."""
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    good, store = office.session.client.oauth_token, office.session.store
    office.session.client.oauth_token = "ghp_taken_back"
    account.want_reading(store)
    await office.turn()
    refused = account.read(store)
    assert (refused.is_refused, (refused.blocked_until or 0) > time.time() + 200) == (True, True)
    office.session.client.oauth_token = good
    monkeypatch.setattr(operations, "process", lambda _: 1)
    synced = operations.sync(office.service, None, retry=False, drop=False, wait=0.0)
    assert synced.problem == ""
    assert is_news(office.service)
    await office.turns()
    assert (account.read(store).problem, account.read(store).blocked_until) == ("", None)
    account.note(store, blocked_until=time.time() + 300, problem="the quota is used up", failing_since=time.time())
    account.ask_anew(store)
    assert account.read(store).blocked_until


@pytest.mark.ruling("L8")
async def test_writes_are_a_second_apart_and_the_turn_says_when_to_come_again(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    seeds.write(office.service, seeds.round_(opened_at=time.time(), expires_at=time.time() + 60))
    seeds.write(office.service, seeds.event(2, kind="round_opened"))
    first = await office.turn()
    assert len(office.hub.writes()) == 1
    again = await posting_turn(office)
    assert len(office.hub.writes()) == 1
    assert first.again is not None
    assert again.again is not None
    assert 0 < again.again <= 1.0


async def posting_turn(office: Office):  # type: ignore[no-untyped-def]
    """Take a turn that comes too soon."""
    return await Desk(office.session)._turn()


@pytest.mark.ruling("L8")
async def test_a_limit_ends_the_turn_and_nothing_is_asked_until_it_is_over(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    office.hub.secondary_limit("POST /repos/*/comments", retry_after=1800)
    turn = await office.turn()
    assert turn.again is not None
    assert 1700 < turn.again <= 1800
    asked = len(office.hub.requests)
    for _ in range(3):
        assert 1700 < ((await office.turn()).again or 0) <= 1800
    assert len(office.hub.requests) == asked
    account.note(office.session.store, blocked_until=time.time() - 1)
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status"]
    assert account.read(office.session.store).problem == ""


@pytest.mark.ruling("L8")
async def test_half_an_hour_without_github_loses_and_repeats_nothing(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    office.hub.down()
    waits = []
    for _ in range(9):
        waits.append((await office.turn()).again or 0.0)
        account.note(office.session.store, blocked_until=time.time() - 1)
    assert waits == sorted(waits)
    assert waits[-1] <= 900
    assert sum(waits) > 1800
    away = account.read(office.session.store)
    assert away.failing_since is not None
    assert "cannot be reached" in away.problem
    office.hub.up()
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status"]
    assert account.read(office.session.store).failing_since is None


@pytest.mark.ruling("L3")
async def test_what_github_declines_for_good_is_given_up_and_holds_up_nothing(office: Office) -> None:
    number = office.hub.pull()
    bind(office, 999)
    bind(office, number, "job-0123456789cd")
    await office.turns()
    assert _marks(office, number) == ["job-0123456789cd-status"]
    (failed,) = facts.failures(office.session.store)
    assert (failed.state, failed.number) == (facts.FAILED, 999)


@pytest.mark.parametrize("settings", ['comments = "pauses"', 'comments = "never"'])
async def test_only_what_the_settings_want_is_written(office: Office, settings: str) -> None:
    number = office.hub.pull()
    bind(office, number)
    seeds.write(office.service, seeds.round_(opened_at=time.time(), expires_at=time.time() + 60))
    seeds.write(office.service, seeds.event(2, kind="round_opened"))
    await office.turns()
    assert _marks(office, number) == ([f"{ROOT}-r1-pause"] if "pauses" in settings else [])


@pytest.mark.ruling("L3")
async def test_a_pause_that_is_over_before_it_was_told_is_not_told(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    seeds.write(office.service, seeds.round_(opened_at=time.time(), expires_at=time.time() + 60))
    seeds.write(office.service, seeds.event(2, kind="round_opened"))
    office.hub.down()
    await office.turn()
    over = seeds.round_(opened_at=1.0, expires_at=2.0, end="answered", closed="ann answered", closed_at=2.0, revision=2)
    seeds.write(office.service, over, seeds.event(3, kind="round_closed"))
    office.hub.up()
    account.note(office.session.store, blocked_until=None)
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status"]


@pytest.mark.ruling("L6")
async def test_a_reaction_is_there_once(office: Office) -> None:
    number = office.hub.pull()
    comment = office.hub.comment(as_="ann", number=number, body="/service status")
    row = FactRow(f"comment-{comment}-taken", "taken", "", "acme/tool", number, str(comment))
    for _ in range(2):
        await writing.reaction(office.session, row)
    assert office.hub.reactions(comment) == [("helper", "eyes")]


async def test_a_tree_that_is_opened_again_is_told_of_again(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    ended = seeds.task(state=TaskState.BLOCKED, revision=2, ended_at=2.0)
    seeds.write(office.service, ended, seeds.event(2, kind="task_blocked"))
    await office.turns()
    assert threads.open_ones(office.session.store) == []
    seeds.write(office.service, seeds.task(revision=3), seeds.event(3, kind="retry_requested"))
    await office.turns()
    assert [each.root_job_id for each in threads.open_ones(office.session.store)] == [ROOT]
    ended = seeds.task(state=TaskState.DONE, revision=4, ended_at=4.0)
    seeds.write(office.service, ended, seeds.event(4, kind="tree_ended"))
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status", f"{ROOT}-e2-end", f"{ROOT}-e4-end"]


@pytest.mark.ruling("L3")
async def test_an_end_that_is_undone_before_it_was_told_is_not_told_and_needs_nobody(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    ended = seeds.task(state=TaskState.BLOCKED, revision=2, ended_at=2.0)
    seeds.write(office.service, ended, seeds.event(2, kind="task_blocked"))
    office.hub.down()
    await office.turn()
    seeds.write(office.service, seeds.task(revision=3), seeds.event(3, kind="retry_requested"))
    office.hub.up()
    account.note(office.session.store, blocked_until=None)
    await office.turns()
    assert _marks(office, number) == [f"{ROOT}-status"]
    assert facts.failures(office.session.store) == []


@pytest.mark.ruling("L8")
async def test_several_at_once_write_one_after_the_other_and_once(office: Office) -> None:
    """The desk is one workflow, so turns are serialised; even without that, each comment exists once."""
    number = office.hub.pull()
    bind(office, number)
    await office.turn()
    await asyncio.gather(*(office.turn() for _ in range(4)))
    assert _marks(office, number) == [f"{ROOT}-status"]


@pytest.mark.ruling("L8")
async def test_a_fault_of_ours_with_one_comment_holds_up_no_other(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, second = office.hub.pull(), office.hub.pull("second")
    bind(office, number)
    bind(office, second, "job-0123456789cd")

    def broken(session: GithubSession, fact: FactRow) -> CommentBody:
        if fact.root_job_id == ROOT:
            raise RuntimeError("a bug")
        return body_of(session, fact)

    monkeypatch.setattr("bridge.github.writing.body_of", broken)
    for _ in range(writing.MOST_ATTEMPTS + 2):
        await office.turn()
    assert _marks(office, second) == ["job-0123456789cd-status"]
    (failed,) = facts.failures(office.session.store)
    assert (failed.state, failed.error) == (facts.FAILED, "an internal error: RuntimeError")


@pytest.mark.ruling("L8")
async def test_a_repository_that_github_fails_at_holds_up_no_other(office: Office) -> None:
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    office.hub.repo("acme/broken")
    account.begin_reading(office.session.store, "acme/broken", 0.0)
    repo_rows.put(office.session.store, "acme/broken", "/srv/broken", office.service.settings.host, "acme/broken")
    seeds.write(office.service, seeds.task("job-0123456789cd", repo="acme/broken"))
    other = seeds.job("job-0123456789cd", repo="acme/broken", pull_request=1)
    seeds.write(office.service, other, seeds.event(1, "job-0123456789cd", kind="tree_started"))
    office.hub.fail("GET /repos/acme/broken/issues/comments", 99, 502, {}, {"message": "no"})
    account.want_reading(office.session.store)
    office.hub.comment(as_="bob", number=number, body="/service status")
    await office.turns()
    assert len(office.hub.bodies(number)) == 3
    errors = {each.github: each.error for each in account.readings(office.session.store)}
    assert errors["acme/broken"] == "GitHub answers 502"
    assert account.read(office.session.store).blocked_until is None


@pytest.mark.parametrize("answer", [{"odd": 1}, [{"id": "x"}], None, "text"])
async def test_an_answer_of_another_shape_is_github_being_broken(office: Office, answer: object) -> None:
    number = office.hub.pull()
    bind(office, number)
    await office.turns()
    office.hub.fail("GET /repos/acme/tool/issues/comments", 1, 200, {}, answer)
    account.want_reading(office.session.store)
    turn = await office.turn()
    assert "GitHub sent an" in turn.says


@pytest.mark.ruling("N1")
async def test_a_desk_that_somebody_else_has_started_takes_no_turn(office: Office) -> None:
    """A desk takes no input, so anybody who reaches the server can start one; only one id is valid."""
    desk = Desk(office.session)
    queue = office.service.settings.temporal.task_queue
    with pytest.raises(ApplicationError, match="is not the desk of this service"):
        await ActivityEnvironment().run(desk.turn, f"other-{queue}")
    assert (await ActivityEnvironment().run(desk.turn, desk_id(queue))).says
