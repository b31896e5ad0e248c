"""The first page lists everything that waits for people (ruling M1)."""

import re
import time
from typing import Any

import pytest
from sqlalchemy import event, insert

from activities.store import job_rows, outbox, schema, stall_rows
from activities.store.github import account
from bridge.operations.jobs.hosts import AbsentHost
from bridge.operations.orders import attention
from bridge.operations.service import Service
from tests.bridge import github_seeds, seeds
from tests.bridge.http.dashboard.surfer import Shown, Surfer
from workflows.model.event_kinds import EventKind
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.rows import RETRY, FailingRecord, QuestionRecord, Records
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.policy.stalls import WAYS, Stall, StallKind

pytestmark = pytest.mark.ruling("M1")

NOW = time.time()
DAYS = 3 * 86_400 + 1800
"""Shown as `3 d`, however long the test takes."""
HOSTILE = "<script>alert(1)</script>\"'&\u202e{{ 7*7 }}"


def root(number: int) -> str:
    return f"job-{number:012d}"


def blocked(service: Service, name: str, at: float, **fields: Any) -> None:
    task = {
        "state": TaskState.BLOCKED,
        "reason": "leg one failed",
        "next": f"{RETRY} {name}.1",
        "ended_at": at,
    }
    task |= {"waits_for": WaitsFor.RETRY, "to_retry": f"{name}.1"}
    leg = seeds.job(f"{name}.1", state=JobState.FAILED, reason="tests are red", delegation_id="one")
    seeds.write(service, seeds.task(name, **(task | fields)), seeds.job(name, state=JobState.SUCCEEDED), leg)


def unroutable(service: Service, name: str, at: float, why: str = "no agent `scuot`") -> None:
    flagged = seeds.job(name, state=JobState.SUCCEEDED, preflight_failed=why, queued_at=at)
    seeds.write(service, seeds.task(name), flagged)


def untold(service: Service, name: str, at: float, error: str = "exit 1", message: str = "it waits") -> None:
    event = seeds.event(7, name, kind=EventKind.ROUND_OPENED, at=at, message=message)
    seeds.write(service, seeds.task(name, state=TaskState.DONE), event)
    outbox.record_try(service.store, event.event_id, "command", error)


def hostless(service: Service, name: str, at: float, host: str = "attic", why: str = "") -> None:
    row = {"root_job_id": name, "host": host, "start": {}, "revision": 0}
    with service.store.begin() as connection:
        connection.execute(insert(schema.trees), row)
    seeds.write(service, seeds.task(name), seeds.job(name, state=JobState.QUEUED, queued_at=at, reason=why))


def conflict(
    service: Service, name: str, at: float, branch: str = "service/two", waits_for: WaitsFor = WaitsFor.RETRY
) -> None:
    seeds.repo(service)
    done = {"state": JobState.SUCCEEDED, "action": "implement", "head_sha": "a" * 40}
    seeds.write(
        service,
        seeds.task(
            name,
            state=TaskState.BLOCKED,
            next=f"{RETRY} {name}.3",
            ended_at=at,
            reason="legs conflict",
            waits_for=waits_for,
            to_retry=f"{name}.3",
        ),
        seeds.job(name, state=JobState.SUCCEEDED),
        seeds.job(f"{name}.1", delegation_id="one", branch="service/one", **done),
        seeds.job(f"{name}.2", delegation_id="two", branch=branch, **done),
        seeds.job(f"{name}.3", delegation_id="three", state=JobState.BLOCKED, attempt=1, waits_for=waits_for),
    )
    facts = {"conflict": {"branch": branch, "against": ["service/one"], "files": ["limiter.py"]}}
    seeds.payload(service, f"{name}.3", {}, diagnostics=facts)


def headings(shown: Shown) -> list[str]:
    return re.findall(r'id="of-(?:host-)?([^"]+)"', shown.html.replace("aria-labelledby", ""))


async def test_everything_that_waits_stands_in_one_list_oldest_first(service: Service, ann: Surfer) -> None:
    untold(service, root(1), NOW - 100)
    seeds.paused(service, root(2), opened_at=NOW - 600, expires_at=NOW + 9000)
    hostless(service, root(3), NOW - 300)
    blocked(service, root(4), NOW - 500)
    conflict(service, root(5), NOW - 400)
    unroutable(service, root(6), NOW - 200)
    shown = await ann.open("/ui/")
    order = [f"{root(2)}-r1", root(4), root(5), "4", root(6), f"{root(1)}-e7-command"]
    assert headings(shown) == order
    assert 'data-waiting="6"' in shown.html
    assert "6 things need you" in shown.words


async def test_the_page_lists_what_the_command_lists(service: Service) -> None:
    for number in range(3):
        untold(service, root(10 + number), NOW - 100)
        seeds.paused(service, root(20 + number), opened_at=NOW - number)
        blocked(service, root(30 + number), NOW - 500)
        unroutable(service, root(40 + number), NOW - 200)
        hostless(service, root(50 + number), NOW - 300, host=f"h{number}")
    blocked(service, root(60), NOW, next="a finalized tree takes no retry: start a new one", waits_for=WaitsFor.NOTHING)
    conflict(service, root(61), NOW - 9)
    conflict(service, root(62), NOW, waits_for=WaitsFor.NOTHING)
    items, page = attention.find(service), attention.page(service, 0, 50)
    listed = {*(each.round_id for each in items.waiting), *(each.root_job_id for each in items.blocked)}
    listed |= {job.job_id for job in items.preflight_failed} | {way.root_job_id for way in items.conflicts}
    listed |= {host.host for host in items.hosts}
    listed |= {f"{how.notification_id} {how.channel}" for how in items.undelivered}
    assert {item.place.key for item in page.items} == listed
    assert page.total == len(listed) == 16


async def test_a_question_shows_all_one_needs_to_answer(service: Service, ann: Surfer) -> None:
    questions = (
        QuestionRecord(
            id="store", prompt="Which store?", choices=("redis", "memory"), job_id=f"{root(1)}.2", leg="dev"
        ),
        QuestionRecord(id="limit", prompt="How many?", job_id=root(1)),
    )
    asked = seeds.round_(root(1), questions=questions, opened_at=NOW - 60, expires_at=NOW + DAYS + 3600)
    tokens = Usage(input_tokens=1200, output_tokens=34)
    mine = seeds.job(root(1), state=JobState.SUCCEEDED, usage=tokens, cost_usd=1.5)
    seeds.write(service, seeds.task(root(1), state=TaskState.AWAITING_HUMAN, title="Limit it"), mine, asked)
    shown = await ann.open("/ui/")
    for words in ("Limit it", "acme/shop", "Which store?", "asked by dev", "redis", "memory", "in 3 d 1 h", "$1.50"):
        assert words in shown.words
    assert "1\u202f234 tokens" in shown.html
    form = shown.form("/ui/attention/say")
    assert {"choice.store", "text.store", "text.limit", "seen", "by"} <= set(form.fields)
    assert form.boxes["choice.store"] == ["0", "1", ""]
    assert {words for _, _, words in form.buttons} == {"Answer", "Extend"}
    assert f"/ui/jobs/{root(1)}.2" in shown.read.links


async def test_one_question_is_answered_by_one_click(service: Service, ann: Surfer) -> None:
    asked = QuestionRecord(id="store", prompt="Which?", choices=("redis", "memory"), job_id=root(1))
    seeds.paused(service, root(1), questions=(asked,))
    form = (await ann.open("/ui/")).form("/ui/attention/say")
    assert ("pick", "1", "Answer: memory") in form.buttons
    assert "text.store" in form.fields, "and in one's own words"


async def test_the_page_and_its_badge_tell_one_number(service: Service, ann: Surfer) -> None:
    for number in range(3):
        seeds.paused(service, root(number))
        html = (await ann.open("/ui/")).html
        assert f'data-waiting="{number + 1}"' in html
        assert f'id="badge">{number + 1}</span>' in html
        assert f"<title>({number + 1}) Attention</title>" in html


async def test_what_is_done_to_several_is_what_one_of_them_takes(service: Service, ann: Surfer) -> None:
    for number in range(2):
        seeds.paused(service, root(number))
    assert [words for *_, words in (await ann.open("/ui/")).form("/ui/attention/chosen").buttons] == ["Extend"]
    seeds.paused(service, root(3), kind=RoundKind.FAILURE, questions=(), verbs=("continue", "abort", "extend"))
    offered = [words for *_, words in (await ann.open("/ui/")).form("/ui/attention/chosen").buttons]
    assert offered == ["Go on without what failed", "Abort", "Extend"]


@pytest.mark.parametrize("verbs", [("retry", "continue", "abort", "extend"), ("continue", "abort", "extend")])
async def test_a_failure_offers_what_its_round_takes(service: Service, ann: Surfer, verbs: tuple[str, ...]) -> None:
    failing = FailingRecord(leg="dev", job_id=f"{root(1)}.1", attempt=2, state=JobState.FAILED, reason="tests are red")
    seeds.paused(service, root(1), kind=RoundKind.FAILURE, questions=(), failing=(failing,), verbs=verbs)
    shown = await ann.open("/ui/")
    form = shown.form("/ui/attention/say")
    assert tuple(value for _, value, _ in form.buttons) == verbs
    assert "instructions" in form.fields
    assert "tests are red" in shown.words


@pytest.mark.ruling("F4")
@pytest.mark.parametrize("more", [(), (QuestionRecord(id="size", prompt="How big?", job_id=seeds.ROOT),)])
async def test_a_question_that_nobody_can_answer_any_more_has_no_field(
    service: Service, ann: Surfer, more: tuple[QuestionRecord, ...]
) -> None:
    asks = QuestionRecord(id="store", prompt="Which store?", choices=("redis", "memory"), job_id=seeds.ROOT)
    seeds.paused(service, questions=(asks, *more), verbs=("abort", "extend"))
    shown = await ann.open("/ui/")
    form = shown.form("/ui/attention/say")
    assert [value for _, value, _ in form.buttons] == ["abort", "extend"]
    assert not [name for name in form.fields if name.startswith(("text.", "choice.", "partial"))]
    assert "Which store?" in shown.words


async def test_a_blocked_task_shows_why_and_what_opens_it(service: Service, ann: Surfer) -> None:
    blocked(service, root(1), NOW - 60)
    shown = await ann.open("/ui/")
    assert "leg one failed" in shown.words
    assert "tests are red" in shown.words
    assert shown.form(f"/ui/jobs/{root(1)}.1/retry")
    assert shown.form(f"/ui/trees/{root(1)}/dismiss")


async def test_a_conflict_shows_every_way_out_of_it(service: Service, ann: Surfer) -> None:
    conflict(service, root(1), NOW - 60)
    shown = await ann.open("/ui/")
    assert "Conflict in limiter.py" in shown.words
    for job in (f"{root(1)}.1", f"{root(1)}.2"):
        assert shown.form(f"/ui/jobs/{job}/merge")
        assert shown.form(f"/ui/jobs/{job}/drop").boxes == {"force": ["yes"]}
    assert shown.form(f"/ui/jobs/{root(1)}.3/retry")
    assert "merge --no-ff service/two" in shown.words


async def test_a_host_without_a_worker_shows_its_jobs_and_the_command(service: Service, ann: Surfer) -> None:
    for number in range(8):
        hostless(service, root(number + 1), NOW - 600 + number)
    shown = await ann.open("/ui/")
    assert "8 jobs wait" in shown.words
    assert "and 3 more" in shown.words
    assert "on attic: service daemon start" in shown.words


@pytest.mark.ruling("B3")
async def test_what_stands_still_shows_why_and_the_commands(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(root(1), title="Limit it"), seeds.job(root(1), state=JobState.RUNNING))
    stall_rows.replace(service.store, StallKind.END, "here", [Stall(StallKind.END, root(1), 1, NOW - 120, "here")])
    stall_rows.replace(service.store, StallKind.STEP, "", [Stall(StallKind.STEP, "nightly", 12, NOW - 60)])
    shown = await ann.open("/ui/")
    assert "2 things need you" in shown.words
    assert "its program ended on here, and that is not recorded since" in shown.words
    assert "nightly: its next step does not succeed: attempt 12" in shown.words
    assert all(way in shown.words for way in WAYS)


@pytest.mark.ruling("Q4", "B3")
async def test_jobs_that_no_host_can_run_say_what_is_missing(service: Service, ann: Surfer) -> None:
    for number in range(2):
        hostless(service, root(number + 1), NOW - 600 + number, why="no host has the label gpu")
    [item] = attention.every(service).items
    assert item.host == AbsentHost(
        "a host that can run them", "no host has the label gpu", "service host list", (root(1), root(2)), unplaced=True
    )
    shown = await ann.open("/ui/")
    assert "✕ no host" in shown.words
    assert "no host has the label gpu" in shown.words
    assert "attic" not in shown.words


async def test_a_preflight_failure_and_a_notification_say_what_is_wrong(service: Service, ann: Surfer) -> None:
    unroutable(service, root(1), NOW - 60, why="no agent `scuot`, did you mean `scout`?")
    untold(service, root(2), NOW - 30, error="exit status 7", message="round 1 waits")
    shown = await ann.open("/ui/")
    for words in ("did you mean `scout`?", "exit status 7", "round 1 waits", "1 attempt"):
        assert words in shown.words
    assert shown.form(f"/ui/trees/{root(1)}/kill").buttons == [("how", "graceful", "End the task")]


async def test_the_newest_is_named_for_the_notification(service: Service, ann: Surfer) -> None:
    for number in range(60):
        seeds.paused(service, root(number), opened_at=NOW - 100 + number, repo=f"acme/r{number}")
    assert 'data-newest="acme/shop: look"' in (await ann.open("/ui/")).html


@pytest.mark.ruling("M8")
async def test_however_much_waits_the_page_is_small_and_asks_the_store_as_often(service: Service, ann: Surfer) -> None:
    asked: list[str] = []
    event.listen(service.store, "before_cursor_execute", lambda _c, _k, text, *_: asked.append(text))

    async def cost(first: int, last: int) -> tuple[int, int]:
        for number in range(first, last):
            seeds.paused(service, root(number), opened_at=NOW - 1000 + number)
            blocked(service, root(1000 + number), NOW - 2000)
        asked.clear()
        shown = await ann.open("/ui/")
        return len(shown.html.encode()), len([each for each in asked if each.startswith(("SELECT", "WITH"))])

    few, many = await cost(0, 30), await cost(30, 150)
    assert many[1] <= few[1]
    assert many[0] < 150_000


async def test_of_many_fifty_are_shown_and_the_rest_are_a_click_away(service: Service, ann: Surfer) -> None:
    for number in range(120):
        seeds.paused(service, root(number), opened_at=NOW - 1000 + number)
    first = await ann.open("/ui/")
    assert (len(headings(first)), 'data-waiting="120"' in first.html) == (50, True)
    assert "70 more" in first.words
    second = await ann.open("/ui/?from=50")
    last = await ann.open("/ui/?from=100")
    assert len({*headings(first), *headings(second), *headings(last)}) == 120
    assert ("20 more" in second.words, "more" in last.words.split("Recently done")[0]) == (True, False)
    assert headings(await ann.open("/ui/?from=5000")) == headings(last), "what is past the end shows the end"
    assert (await ann.open("/ui/?from=x")).status == 400


async def test_when_nothing_waits_what_runs_is_shown(service: Service, ann: Surfer) -> None:
    spent = Usage(input_tokens=5000, output_tokens=1)
    running = seeds.job(root(1), agent="builder", usage=spent)
    seeds.write(service, seeds.task(root(1), title="Raise the limit", opened_at=NOW - DAYS), running)
    shown = await ann.open("/ui/")
    for words in ("Nothing waits for you. This runs now:", "Raise the limit", "builder", "3 d"):
        assert words in shown.words
    assert 'data-waiting="0"' in shown.html


async def test_where_nothing_ever_ran_it_says_how_to_begin(service: Service, ann: Surfer) -> None:
    shown = await ann.open("/ui/")
    assert "service init" in shown.words
    assert {"/ui/new/repository", "/ui/new/agent", "/ui/new"} <= set(shown.read.links)
    seeds.write(service, seeds.task(root(1), state=TaskState.DONE))
    assert "Nothing was ever started" not in (await ann.open("/ui/")).words


@pytest.mark.ruling("M2")
async def test_what_was_done_lately_says_by_whom_how_and_when(service: Service, ann: Surfer) -> None:
    over: dict[str, Any] = {"end": RoundEnd.ANSWERED, "closed_at": NOW - DAYS, "verbs": (), "commands": ()}
    ended = seeds.round_(root(1), closed="answered by bob, in the terminal at noon", said="color: red", **over)
    event = seeds.event(3, root(2), kind=EventKind.TASK_DISMISSED, at=NOW - 30, message="dismissed by eve")
    seeds.write(service, seeds.task(root(1), title="Paint it", state=TaskState.DONE), ended)
    seeds.write(service, seeds.task(root(2), title="Old one", state=TaskState.CANCELLED), event)
    words = (await ann.open("/ui/")).words
    lately = words.split("Recently done")[1]
    assert "Paint it : answered by bob, in the terminal at noon color: red 3 d" in lately
    assert lately.index("Old one : dismissed by eve") < lately.index("Paint it")


@pytest.mark.ruling("M7")
async def test_no_field_hides_what_scripts_ask_a_form_for(service: Service, ann: Surfer) -> None:
    """In a browser, a field named `action` hides `form.action`."""
    seeds.paused(service, root(1))
    conflict(service, root(2), NOW)
    unroutable(service, root(3), NOW)
    names = {name for form in (await ann.open("/ui/")).read.forms for name in form.fields}
    assert not names & {"form", "action", "method", "elements", "id", "name", "target", "submit"}


@pytest.mark.ruling("M6")
async def test_whatever_was_written_is_shown_as_text(service: Service, ann: Surfer) -> None:
    asked = QuestionRecord(id="q", prompt=HOSTILE, choices=(HOSTILE, "b"), job_id=root(1), leg=HOSTILE, answer=HOSTILE)
    failing = FailingRecord(leg=HOSTILE, job_id=f"{root(1)}.1", attempt=1, state=JobState.FAILED, reason=HOSTILE)
    shown = seeds.round_(root(1), questions=(asked,), failing=(failing,), repo=HOSTILE)
    waits = {"state": TaskState.AWAITING_HUMAN, "title": HOSTILE}
    seeds.write(service, seeds.task(root(1), **waits), seeds.job(root(1), state=JobState.SUCCEEDED), shown)
    over: dict[str, Any] = {"end": RoundEnd.ANSWERED, "closed_at": NOW, "closed": HOSTILE, "said": HOSTILE}
    seeds.write(service, seeds.task(root(2), title=HOSTILE), seeds.round_(root(2), **over))
    blocked(
        service,
        root(3),
        NOW,
        reason=HOSTILE,
        title=HOSTILE,
        repo=HOSTILE,
        next=f"{RETRY} {HOSTILE}",
        to_retry=HOSTILE[:80],
    )
    conflict(service, root(4), NOW, branch=HOSTILE)
    unroutable(service, root(5), NOW, why=HOSTILE)
    untold(service, root(6), NOW, error=HOSTILE, message=HOSTILE)
    hostless(service, root(7), NOW - 600, host=HOSTILE)
    html = (await ann.open("/ui/")).html
    assert 'data-waiting="6"' in html
    assert "<script>alert" not in html
    assert "\u202e" not in html
    assert "{{ 7*7 }}" in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;\\u202e{{ 7*7 }}") >= 15


async def test_running_trees_do_not_hide_a_store_that_is_empty_of_waits(service: Service) -> None:
    job_rows.write(service.store, Records(task=seeds.task(root(1)), jobs=(seeds.job(root(1)),)))
    assert attention.page(service, 0, 50).total == 0
    assert [each.task.root_job_id for each in attention.running(service)] == [root(1)]


@pytest.mark.ruling("L2")
async def test_what_could_not_be_written_to_github_stands_there_with_what_to_type(
    service: Service, ann: Surfer
) -> None:
    seeds.write(service, seeds.task(root(1), title="Limit it"))
    github_seeds.failed(service, "one", why=HOSTILE, root=root(1), at=NOW - 3 * 3600 - 60)
    account.note(service.store, failing_since=NOW - 7300, problem="GitHub answers 502")
    github_seeds.thread(service, root(1))
    shown = await ann.open("/ui/")
    assert 'data-waiting="2"' in shown.html
    assert "<script>alert" not in shown.html
    for words in ("Limit it", "acme/shop#7", "not written", "no answer", "GitHub answers 502; since "):
        assert words in shown.words
    for command in ("service github status", "service github sync acme/shop --retry", "service doctor"):
        assert f"<code>{command}</code>" in shown.html
