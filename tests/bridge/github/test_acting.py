"""Permission to command by a comment, each comment exactly once, and no loops, whoever answers (rulings L4 to L7,
F7).
"""

import time
from datetime import UTC, datetime, timedelta

import pytest

from activities.store.github import account, threads
from bridge.github import orders
from tests.bridge import seeds
from tests.bridge.github.conftest import Office, answers, bind, heard, waiting
from tests.secrets.redaction_table import TOKENS
from workflows.model.errors import RefusedError, UnreachableError
from workflows.model.orders import ResumeOrder

ROOT, OTHER = seeds.ROOT, "job-0123456789cd"
ANSWER = "/service resume answer\ncolor: dark red\nand deep"


@pytest.mark.ruling("L4", "L5", "L6", "F7")
async def test_an_answer_of_several_lines_is_taken_and_acknowledged(office: Office, resumes: list[ResumeOrder]) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    comment = office.hub.comment(as_="ann", number=number, body=ANSWER.replace("\n", "\r\n"))
    await heard(office)
    (order,) = resumes
    assert (order.actor, order.channel, order.verb, order.job_id) == ("ann", "comment", "answer", ROOT)
    assert order.text == "color: dark red\nand deep"
    assert order.request_id == f"comment-{comment}-0"
    assert office.hub.reactions(comment) == [("helper", "eyes"), ("helper", "+1")]
    assert answers(office, number) == []


@pytest.mark.ruling("L5", "L7")
async def test_a_comment_acts_once_however_often_it_is_seen(office: Office, resumes: list[ResumeOrder]) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    office.hub.comment(as_="ann", number=number, body=ANSWER)
    for _ in range(3):
        await heard(office)
    account.note_reading(office.session.store, "acme/tool", since=0.0)  # read everything again, as after a restore
    await heard(office)
    assert len(resumes) == 1


@pytest.mark.ruling("L5")
async def test_it_acts_once_also_when_it_died_before_it_noted_that(
    office: Office, resumes: list[ResumeOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeat carries an equal request id, under which a tree acts once."""
    number = office.hub.pull()
    await waiting(office, number)
    office.hub.comment(as_="ann", number=number, body=ANSWER)
    with monkeypatch.context() as broken:
        broken.setattr(threads, "settle_comment", _dies)
        with pytest.raises(KeyboardInterrupt):
            await heard(office)
    await heard(office)
    assert len(resumes) > 1
    assert len({order.request_id for order in resumes}) == 1


def _dies(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.ruling("L5", "L6")
async def test_what_is_quoted_or_code_or_marked_is_no_command(office: Office, resumes: list[ResumeOrder]) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    before = len(office.hub.writes())
    for body in (
        f"> {ANSWER}\n\nI agree with that",
        f"```\n{ANSWER}\n```",
        f"    {ANSWER}",
        f"<!--\n{ANSWER}\n-->",
        "please write `/service resume answer red`",
        "  hello\n/servicex resume answer red",
        "the last line holds a mark\n/service resume answer red\n<!-- service:job-0123456789ab-status -->",
    ):
        office.hub.comment(as_="ann", number=number, body=body)
    await heard(office)
    assert (resumes, len(office.hub.writes())) == ([], before)


@pytest.mark.ruling("L5", "L6")
async def test_bots_our_own_edited_and_old_comments_are_nothing(office: Office, resumes: list[ResumeOrder]) -> None:
    number = office.hub.pull()
    office.hub.user("robot", role="admin", type="Bot")
    office.hub.comment(as_="ann", number=number, body=ANSWER, at=datetime.now(UTC) - timedelta(hours=1))
    await waiting(office, number)
    before = len(office.hub.writes())
    office.hub.comment(as_="robot", number=number, body=ANSWER)
    office.hub.comment(as_="helper", number=number, body=ANSWER)
    edited = office.hub.comment(as_="ann", number=number, body="hello")
    office.hub.edit_comment(edited, ANSWER, as_="ann")
    await heard(office)
    assert (resumes, len(office.hub.writes())) == ([], before)


@pytest.mark.ruling("L5")
async def test_a_comment_that_was_edited_between_its_reading_and_its_acting_is_nothing(
    office: Office, resumes: list[ResumeOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    comment = office.hub.comment(as_="ann", number=number, body=ANSWER)
    away = _raises(UnreachableError("Temporal is away"))
    with monkeypatch.context() as broken:
        broken.setattr(orders, "resume", away)
        await heard(office)
    assert threads.comment(office.session.store, comment).state == threads.TAKEN  # type: ignore[union-attr]
    office.hub.edit_comment(comment, ANSWER.replace("red", "green"), as_="ann")
    await heard(office)
    assert resumes == []
    assert threads.comment(office.session.store, comment).outcome == "it was edited"  # type: ignore[union-attr]


def _raises(error: Exception):  # type: ignore[no-untyped-def]
    async def resume(*_: object) -> None:
        raise error

    return resume


@pytest.mark.ruling("L5", "L6")
async def test_a_stranger_is_told_once_and_nothing_happens(office: Office, resumes: list[ResumeOrder]) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    comment = office.hub.comment(as_="bob", number=number, body=ANSWER)
    for _ in range(3):
        await heard(office)
    assert resumes == []
    assert answers(office, number) == [f"comment-{comment}-refusal"]
    assert office.hub.reactions(comment) == []


@pytest.mark.ruling("L5")
async def test_who_may_is_asked_when_the_comment_is_acted_on(office: Office, resumes: list[ResumeOrder]) -> None:
    """A person whose permission was revoked since then commands nothing."""
    number = office.hub.pull()
    await waiting(office, number)
    comment = office.hub.comment(as_="ann", number=number, body=ANSWER)
    office.hub.user("ann", role="read")
    await heard(office)
    assert resumes == []
    assert answers(office, number) == [f"comment-{comment}-refusal"]


@pytest.mark.ruling("L6")
async def test_after_five_refusals_an_hour_a_thread_falls_silent(office: Office, resumes: list[ResumeOrder]) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    for _ in range(8):
        office.hub.comment(as_="ann", number=number, body="/service frobnicate")
    await heard(office)
    assert len(answers(office, number)) == 5


@pytest.mark.ruling("L6")
async def test_strangers_get_one_reply_a_thread_and_take_none_from_who_may(
    office: Office, resumes: list[ResumeOrder]
) -> None:
    number, elsewhere = office.hub.pull(), office.hub.pull("other-topic")
    office.hub.user("eve", role="read")
    await waiting(office, number)
    bind(office, elsewhere, OTHER)
    await office.turns()
    first = office.hub.comment(as_="bob", number=number, body="/service status")
    for who in ("bob", "eve", "bob", "eve", "bob", "eve"):
        office.hub.comment(as_=who, number=number, body="/service status")
    await heard(office)
    assert answers(office, number) == [f"comment-{first}-refusal"]
    mistake = office.hub.comment(as_="ann", number=number, body="/service frobnicate")
    there = office.hub.comment(as_="eve", number=elsewhere, body="/service status")
    await heard(office)
    assert answers(office, number) == [f"comment-{first}-refusal", f"comment-{mistake}-refusal"]
    assert answers(office, elsewhere) == [f"comment-{there}-refusal"]


@pytest.mark.ruling("L6")
async def test_a_bot_that_answers_every_comment_makes_no_loop(office: Office, resumes: list[ResumeOrder]) -> None:
    """An account that quotes us, commands, and counts as a person on GitHub; the thread still ends."""
    number = office.hub.pull()
    await waiting(office, number)
    seen: set[int] = set()
    for _ in range(12):
        for comment in office.hub.comments(number):
            if comment["user"]["login"] == "helper" and comment["id"] not in seen:
                seen.add(comment["id"])
                office.hub.comment(as_="bob", number=number, body=f"> {comment['body'][:20]}\n\n/service status")
        await heard(office)
    assert resumes == []
    assert len(answers(office, number)) == 1


@pytest.mark.ruling("L6")
async def test_two_services_on_one_thread_do_not_answer_each_other(office: Office, resumes: list[ResumeOrder]) -> None:
    """The second service has an account of its own, and its comments contain commands to copy."""
    number = office.hub.pull()
    await waiting(office, number)
    office.hub.user("other", role="admin")
    text = f"Paused.\n\n/service resume {OTHER} answer red\n\n<!-- service:{OTHER}-r1-pause -->"
    office.hub.comment(as_="other", number=number, body=text)
    comment = office.hub.comment(as_="ann", number=number, body=f"/service resume {OTHER} answer red")
    before = len(office.hub.writes())
    await heard(office)
    assert resumes == []
    assert answers(office, number) == []
    assert len(office.hub.writes()) - before <= 1  # eyes at most
    assert threads.comment(office.session.store, comment).state == threads.IGNORED  # type: ignore[union-attr]


@pytest.mark.ruling("L4")
async def test_the_job_may_be_left_out_when_one_round_is_open_and_else_the_lines_are_said(
    office: Office, resumes: list[ResumeOrder]
) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    await waiting(office, number, OTHER)
    office.hub.comment(as_="ann", number=number, body="/service resume answer red")
    await heard(office)
    assert resumes == []
    refusal = office.hub.bodies(number)[-1]
    assert f"/service resume {ROOT} answer" in refusal
    assert f"/service resume {OTHER} answer" in refusal
    office.hub.comment(as_="ann", number=number, body=f"/service resume {OTHER} answer red")
    await heard(office)
    assert [order.job_id for order in resumes] == [OTHER]


@pytest.mark.ruling("L5")
async def test_a_tree_is_not_commanded_from_another_pull_request(office: Office, resumes: list[ResumeOrder]) -> None:
    number, elsewhere = office.hub.pull(), office.hub.pull("other-topic")
    await waiting(office, number)
    bind(office, elsewhere, OTHER)
    await office.turns()
    office.hub.comment(as_="ann", number=elsewhere, body=f"/service resume {ROOT} answer red")
    await heard(office)
    assert resumes == []
    assert "discussed elsewhere" in office.hub.bodies(elsewhere)[-1]


@pytest.mark.ruling("L6")
async def test_what_the_tree_refuses_is_said_with_the_lines_to_write(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    no = RefusedError("round 1 takes answer and extend, not retry", f"service resume {ROOT} answer TEXT")
    monkeypatch.setattr(orders, "resume", _raises(no))
    comment = office.hub.comment(as_="ann", number=number, body="/service resume retry")
    await heard(office)
    assert answers(office, number) == [f"comment-{comment}-refusal"]
    assert "takes answer and extend" in office.hub.bodies(number)[-1]
    assert f"/service resume {ROOT} answer TEXT" in office.hub.bodies(number)[-1]
    assert office.hub.reactions(comment) == [("helper", "eyes")]


@pytest.mark.ruling("L6", "N7")
async def test_a_refusal_quotes_the_line_it_is_about(office: Office, resumes: list[ResumeOrder]) -> None:
    """Several commands in one comment; strangers' words are not repeated, and secrets never are."""
    number, secret = office.hub.pull(), TOKENS["GitHub personal"]
    await waiting(office, number)
    body = f"/service resume answer red\n\n/service frobnicate the @core {secret}\n/service kill {ROOT}"
    office.hub.comment(as_="ann", number=number, body=body)
    await heard(office)
    refusal = office.hub.bodies(number)[-1]
    assert "- `/\u200bservice frobnicate the @\u200bcore [redacted]`: " in refusal
    assert f"- `/\u200bservice kill {ROOT}`: `/\u200bservice kill` is not allowed" in refusal
    assert "answer red" not in refusal
    assert secret not in refusal
    office.hub.comment(as_="bob", number=number, body="/service status of my own words")
    await heard(office)
    assert "only people who may write" in office.hub.bodies(number)[-1]
    assert "of my own words" not in office.hub.bodies(number)[-1]


@pytest.mark.ruling("N7")
async def test_what_is_refused_is_said_without_its_secrets(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    number, secret = office.hub.pull(), TOKENS["GitHub personal"]
    await waiting(office, number)
    no = RefusedError(f"`{secret}` is not one of the choices", f"service resume {ROOT} answer 'q: {secret}' --other")
    monkeypatch.setattr(orders, "resume", _raises(no))
    office.hub.comment(as_="ann", number=number, body=f"/service resume answer {secret}")
    await heard(office)
    assert "is not one of the choices" in office.hub.bodies(number)[-1]
    assert secret not in office.hub.bodies(number)[-1]


@pytest.mark.ruling("L4")
async def test_how_it_stands_is_told_to_who_asks(office: Office, resumes: list[ResumeOrder]) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    comment = office.hub.comment(as_="ann", number=number, body="/service status")
    await heard(office)
    assert answers(office, number) == [f"comment-{comment}-report-{ROOT}"]


@pytest.mark.ruling("L4")
async def test_what_the_settings_do_not_allow_is_refused(office: Office, resumes: list[ResumeOrder]) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    comment = office.hub.comment(as_="ann", number=number, body=f"/service kill {ROOT}")
    await heard(office)
    assert answers(office, number) == [f"comment-{comment}-refusal"]
    assert "[github]" in office.hub.bodies(number)[-1]


@pytest.mark.ruling("L7")
async def test_what_has_not_changed_is_asked_for_free_and_at_most_three_times_a_minute(office: Office) -> None:
    number = office.hub.pull()
    await waiting(office, number)
    for _ in range(2):  # its own comments count as news once
        await heard(office)
    [known] = account.readings(office.session.store)
    assert known.next_at - time.time() > 15
    before = len(office.hub.requests)
    await office.turn()
    assert len(office.hub.requests) == before
    await heard(office)
    await heard(office)
    asked = office.hub.requests[before:]
    assert all(each.free for each in asked), [each.line for each in asked]


@pytest.mark.ruling("L7")
async def test_each_page_of_comments_counts_against_the_poll(office: Office) -> None:
    """Three pages without news are three free requests: a minute's worth."""
    number = office.hub.pull()
    await waiting(office, number)
    for at in range(205):
        office.hub.comment(as_="ann", number=number, body=f"words {at}")
    await heard(office)
    await heard(office)
    [known] = account.readings(office.session.store)
    assert known.next_at - known.polled_at > 55


@pytest.mark.ruling("L7")
async def test_nothing_is_asked_of_a_repository_where_nothing_can_be_answered(office: Office) -> None:
    office.hub.pull()
    await office.turns()
    await heard(office)
    assert [each.line for each in office.hub.requests] == ["GET /user"]
    assert account.read(office.session.store).login == "helper"


@pytest.mark.ruling("N7")
async def test_a_stranger_s_word_for_a_secret_is_put_back_for_nobody(
    office: Office, resumes: list[ResumeOrder]
) -> None:
    """Our own comments show such words."""
    number = office.hub.pull()
    await waiting(office, number)
    office.hub.comment(as_="ann", number=number, body=ANSWER.replace("dark red", "redacted-0123456789abcdef0123"))
    await heard(office)
    (order,) = resumes
    assert order.text.startswith("color: [redacted]")
