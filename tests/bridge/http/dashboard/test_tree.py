"""The views of a tree: overview, timeline, changes, log, and the orders it takes (ruling M3)."""

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from activities.agents.entries import Entry, EntryKind
from activities.settings.model import Settings
from activities.store import attempt_rows
from bridge.machine.locks import FileLock
from bridge.operations.jobs import output
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.http.dashboard import planted
from tests.bridge.http.dashboard.planted import ROOT, leg
from tests.bridge.http.dashboard.surfer import Surfer
from tests.rows import CUT
from workflows.model.rounds import RoundEnd
from workflows.model.rows import FailingRecord, QuestionRecord
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState, WaitsFor

pytestmark = pytest.mark.ruling("M3")

TREE = f"/ui/trees/{ROOT}"
VIEWS = ("", "/timeline", "/changes", "/log")
_, TIMELINE, CHANGES, LOG = (f"{TREE}{view}" for view in VIEWS)
HOSTILE = "<script>alert(1)</script>\u202e\"'><img src=x>"


def rows_of(html: str) -> list[str]:
    return re.findall(r'<li class="job".*?</li>', html, re.DOTALL)


async def test_the_largest_tree_is_one_readable_page(service: Service, ann: Surfer) -> None:
    planted.largest(service)
    await ann.open(TREE)
    began = time.process_time()
    shown = await ann.open(TREE)
    seconds = time.process_time() - began
    assert shown.status == 200
    assert len(shown.html.encode()) < 100_000
    assert seconds < 2
    assert len(rows_of(shown.html)) == 64
    drawn = await ann.open(TIMELINE)
    assert len(drawn.html.encode()) < 150_000
    assert drawn.html.count('<svg class="lane"') == 64, "the timeline has a row for each"
    assert " style=" not in shown.html + drawn.html


@pytest.mark.parametrize("view", VIEWS)
async def test_a_view_takes_as_many_statements_for_64_jobs_as_for_8(service: Service, ann: Surfer, view: str) -> None:
    taken = []
    for jobs in (8, 64):
        planted.played(service, jobs, 600, root=f"job-{jobs:012d}")
        await ann.open(f"/ui/trees/job-{jobs:012d}{view}")
        with statements(service) as ran:
            await ann.open(f"/ui/trees/job-{jobs:012d}{view}")
        taken.append(len(ran))
    assert taken[0] == taken[1] < 25


async def test_finished_batches_of_a_large_tree_are_folded_and_unfold_by_links(service: Service, ann: Surfer) -> None:
    planted.played(service, 64, 600)
    shown = await ann.open(TREE)
    assert shown.html.count('<details id="batch-') == 5
    assert not re.findall(r'<details id="batch-[^"]*" open', shown.html)
    shown = await ann.open(TIMELINE)
    assert len(boxes_of(shown.html)) == 1 + 5, "the coordinator's jobs"
    assert '<details class="graph" id="graph">' in shown.html, "on demand"
    assert f"{TIMELINE}?unfold=0#graph" in shown.read.links
    one = await ann.open(f"{TIMELINE}?unfold=0")
    assert '<details class="graph" id="graph" open>' in one.html
    assert len(boxes_of(one.html)) == 1 + 5 + 12
    assert f"{TIMELINE}#graph" in one.read.links, "the way back"
    assert f"{TIMELINE}?unfold=0,13#graph" in one.read.links
    whole = await ann.open(f"{TIMELINE}?unfold=all")
    assert len(boxes_of(whole.html)) == 64


async def test_batches_that_run_or_are_few_are_shown(service: Service, ann: Surfer) -> None:
    planted.played(service, 64, 600, live=True)
    shown = await ann.open(TREE)
    assert len(re.findall(r'<details id="batch-[^"]*" open', shown.html)) == 1
    assert "Batch 5: 5 done, 1 failed, 4 running" in shown.words
    planted.played(service, 8, 600, root="job-000000000008")
    shown = await ann.open("/ui/trees/job-000000000008")
    assert shown.html.count('<details id="batch-0" open') == 1
    assert "unfold" not in shown.html


async def test_the_views_are_links_and_the_address_of_the_diff_still_works(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(), seeds.job())
    for view, words in zip(VIEWS, ("Overview", "Timeline", "Changes", "Log"), strict=True):
        shown = await ann.open(f"{TREE}{view}")
        assert {f"{TREE}{each}" for each in VIEWS} <= set(shown.read.links)
        assert re.findall(r'aria-current="page">(\w+)<', shown.html.split('aria-label="Views"')[1]) == [words]
        assert f'data-live="/ui/live/trees/{ROOT}{view}?seen="' in shown.html, "it is kept up to date"
    assert (await ann.open(f"{TREE}/diff")).status == 200


async def test_the_log_has_transcripts_and_events_newest_first(service: Service, ann: Surfer) -> None:
    late = leg(1, "late", started_at=30.0, state=JobState.FAILED, reason="3 tests are red", summary="All is well.")
    soon = leg(2, "soon", started_at=20.0, summary="All is well here.")
    skewed = seeds.event(3, message="of a host whose clock is slow", at=5.0)
    events = (seeds.event(1, message="one thing", at=10.0), seeds.event(2, message="another", at=11.0), skewed)
    seeds.write(service, seeds.task(), seeds.job(started_at=10.0), late, soon, *events)
    shown = await ann.open(LOG)
    links = [link for link in shown.read.links if link.endswith("#conversation")]
    assert links == [f"/ui/jobs/{job}#conversation" for job in (f"{ROOT}.1", f"{ROOT}.2", ROOT)]
    assert "late ✕ failed 3 tests are red" in shown.words
    assert "All is well." not in shown.words
    order = [shown.words.index(words) for words in ("another", "one thing", "of a host whose clock is slow")]
    assert order == sorted(order)


async def test_the_log_begins_with_the_newest_and_a_link_shows_all(service: Service, ann: Surfer) -> None:
    planted.played(service, 64, 600)
    shown = await ann.open(LOG)
    assert (shown.html.count("<li data-item>"), shown.html.count("<li><time")) == (12, 30)
    assert "message" not in shown.words
    assert "job begun" not in shown.words
    assert f"{LOG}?all=yes#events" in shown.read.links
    whole = await ann.open(f"{LOG}?all=yes")
    assert (whole.html.count("<li data-item>"), whole.html.count("<li><time")) == (64, 207)
    assert "Show all" not in whole.words


@pytest.mark.parametrize(("begun", "ended_"), [("started", ""), ("has begun", "ended ")])
async def test_the_events_of_a_job_say_only_what_its_name_does_not(
    service: Service, ann: Surfer, begun: str, ended_: str
) -> None:
    messages = {
        "job_queued": "part a (scout implement) is queued: waits for b",
        "job_begun": f"part a (scout implement) {begun}",
        "job_ended": f"part a (scout implement) {ended_}failed; 95,000 tokens, $0.40: 3 tests are red",
    }
    ended = {"job_ended": {"state": "failed"}}
    events = [
        seeds.event(number, kind=kind, message=message, at=time.time() - 3 * 86_400 + number, data=ended.get(kind, {}))
        for number, (kind, message) in enumerate(messages.items(), 1)
    ]
    seeds.write(service, seeds.task(), seeds.job(), *events)
    words = (await ann.open(LOG)).words.split("Events")[1]
    day = time.strftime("%d %b", time.localtime(time.time() - 3 * 86_400))
    for line in ("failed 95,000 tokens, $0.40: 3 tests are red", f"scout started {day}", "scout queued waits for b"):
        assert line in words, words


@pytest.mark.parametrize("view", VIEWS[1:])
async def test_every_view_leads_to_what_needs_a_person(
    service: Service, ann: Surfer, tmp_path: Path, view: str
) -> None:
    asking = seeds.paused(service)
    shown = await ann.open(f"{TREE}{view}")
    assert "Answer scout's question" in shown.words
    assert f"{TREE}#of-{asking.round_id}" in shown.read.links
    assert f'id="of-{asking.round_id}"' in (await ann.open(TREE)).html, "the form there"
    failing = FailingRecord(leg="limiter", job_id=f"{ROOT}.1", attempt=1, state=JobState.FAILED, reason="red")
    root = "job-00000000000f"
    seeds.paused(service, root, kind="failure", verbs=("retry",), questions=(), failing=(failing,))
    assert "Decide about limiter" in (await ann.open(f"/ui/trees/{root}{view}")).words
    root = "job-0000000000b0"
    seeds.write(service, seeds.task(root, state=TaskState.BLOCKED), seeds.job(root))
    assert f"/ui/trees/{root}#of-{root}" in (await ann.open(f"/ui/trees/{root}{view}")).read.links


@pytest.mark.parametrize("view", VIEWS)
async def test_every_view_has_the_next_step_of_finished_work(
    service: Service, ann: Surfer, tmp_path: Path, view: str
) -> None:
    planted.writers(service, tmp_path, {"a": ("a.py", "a\n")})
    shown = await ann.open(f"{TREE}{view}")
    assert [words for *_, words in shown.form(f"{TREE}/finish", form_id="finish").buttons if "main" in words]


async def test_a_failure_shows_its_part_its_reason_and_the_end_of_its_log(
    service: Service, ann: Surfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = FailingRecord(leg="limiter", job_id=f"{ROOT}.1", attempt=2, state=JobState.FAILED, reason="exit code 101")
    verbs = ("retry", "continue", "abort", "extend")
    times: dict[str, Any] = {"opened_at": time.time() - 60, "expires_at": time.time() + 9000}
    seeds.paused(service, kind="failure", verbs=verbs, questions=(), failing=(failed,), **times)
    seeds.write(service, leg(1, "limiter", state=JobState.FAILED, attempt=2))
    asked = list[tuple[str, int]]()

    def log(_: Service, job_id: str, attempt: int, **__: int) -> output.Log:
        asked.append((job_id, attempt))
        entries = [Entry(kind=EntryKind.PRINTED, text=f"line {number} <b>") for number in range(3)]
        return output.Log(job_id=job_id, state=JobState.FAILED, entries=entries)

    monkeypatch.setattr(output, "log", log)
    shown = await ann.open(TREE)
    for words in (
        "Part “limiter” failed",
        "✕ failed after 2 attempts",
        "exit code 101",
        "line 0 <b> line 1 <b> line 2 <b>",
        "Note (optional), sent along with your decision",
        "deadline in ",
        "If nobody decides before the deadline, the task stops",
        "one last job sums up",
    ):
        assert words in shown.words, words
    await ann.open(TREE)
    assert asked == [(f"{ROOT}.1", 2)], "what has ended is read once"
    assert [words for *_, words in shown.form("/ui/attention/say").buttons if words != "Abort"][:2] == [
        "Retry limiter",
        "Go on without limiter",
    ]


async def test_idle_times_are_cut_short_and_shown_in_full_by_a_link(service: Service, ann: Surfer) -> None:
    planted.played(service, 30, 5 * 86_400)
    shown = await ann.open(TIMELINE)
    assert "3 d 12 h of waiting for you, shortened in the chart" in shown.words
    assert "waits 3 d 12 h for a person: Which store should the limiter use?" in shown.words
    shown = await ann.open(f"{TIMELINE}?time=clock")
    assert "shortened in the chart" not in shown.words
    assert "Shorten long waits" in shown.words


async def test_a_finished_tree_begins_with_its_final_summary(service: Service, ann: Surfer) -> None:
    last = leg(
        2, "x", delegation_id=None, continuation="finalize", summary="All is done.\nTwo things.", decision="approved"
    )
    root = seeds.job(state=JobState.SUCCEEDED, summary="Split.", queued_at=1.0)
    seeds.write(service, seeds.task(state=TaskState.DONE, ended_at=2.0), root, leg(1, "a"), last)
    card = (await ann.open(TREE)).html.split('aria-label="Where it stands"')[1].split("</section>")[0]
    assert '<p class="outcome">Done: the lead approves the result. Nothing was changed.</p>' in card
    assert '<p class="text final">All is done.\nTwo things.</p>' in card
    assert "final" not in (await ann.open("/ui/trees/" + open_tree(service))).html.split("<h2")[0]


def open_tree(service: Service) -> str:
    root = "job-00000000000a"
    seeds.write(service, seeds.task(root), seeds.job(root, summary="not yet"))
    return root


def boxes_of(html: str) -> list[str]:
    svg = html.split('<svg role="group"')[1].split("</svg>")[0]
    return re.findall(r'<a href="/ui/jobs/([^"]+)"', svg)


@contextmanager
def statements(service: Service) -> Iterator[list[str]]:
    """Collect the SQL statements of a service."""
    taken: list[str] = []

    def take(*of: Any) -> None:
        taken.append(of[2])

    event.listen(service.store, "before_cursor_execute", take)
    try:
        yield taken
    finally:
        event.remove(service.store, "before_cursor_execute", take)


async def test_the_outline_puts_each_job_below_the_one_that_led_to_it(service: Service, ann: Surfer) -> None:
    below = leg(3, "deep", parent_job_id=f"{ROOT}.1")
    after = leg(4, "x", delegation_id=None, continuation="normal", parent_job_id=ROOT)
    seeds.write(service, seeds.task(), seeds.job(), leg(1, "a"), leg(2, "b"), below, after)
    shown = (await ann.open(TREE)).html
    root, a, deep, b, then = rows_of(shown)
    levels = [re.findall(r'class="name l(\d)"', row) for row in (root, a, deep, b, then)]
    assert levels == [["1"], ["2"], ["3"], ["2"], ["1"]]
    assert re.findall(r'<details id="batch-([^"]+)" open>', shown) == ["0", "1"]
    assert f'href="/ui/jobs/{ROOT}.3"' in deep
    assert "lead: reads the results" in then


async def test_in_a_fleet_a_leg_names_its_host(service: Service, ann: Surfer, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds.write(service, seeds.task(), seeds.job(), leg(1, "a"))
    with service.store.begin() as connection:
        attempt_rows.open_or_get(connection, f"{ROOT}.1", 1, "web-1", "/run", 1.0)
    assert "web-1" not in (await ann.open(TREE)).html
    monkeypatch.setattr(Settings, "is_fleet", property(lambda _: True))
    assert ["on web-1" in row for row in rows_of((await ann.open(TREE)).html)] == [False, True]


async def test_a_leg_is_told_with_everything_that_counts(service: Service, ann: Surfer) -> None:
    fields = {"model": "m-1", "effort": "high", "phase": "review", "attempt": 3, "summary": "It\nis fine."}
    spent = {"usage": {"input_tokens": 1500, "output_tokens": 34}, "cost_usd": 0.5, "decision": "approved"}
    seeds.write(service, seeds.task(), seeds.job(), leg(1, "look", agent="scout", **fields, **spent))
    row = rows_of((await ann.open(TREE)).html)[1]
    for word in (
        "look",
        "succeeded",
        "●",
        "scout",
        " m-1 high",
        "review",
        "attempt 3",
        "40 s",
        "1\u202f534",
        "$0.5",
        "approved",
    ):
        assert word in row, word
    assert "It is fine." in row


async def test_a_done_task_shows_what_failed_in_it_and_leads_to_its_findings(service: Service, ann: Surfer) -> None:
    broken = leg(1, "a", state=JobState.FAILED, reason="the usage limit was reached")
    last = leg(2, "x", delegation_id=None, continuation="finalize", decision="approved")
    seeds.write(service, seeds.task(state=TaskState.DONE, ended_at=2.0), seeds.job(), broken, last)
    assert "The whole result" in (await ann.open(TREE)).words
    planted.result(service, last.job_id, {"findings": ["one", "two"]})
    shown = await ann.open(TREE)
    assert "Done without part a, which failed: the lead approves the result. Nothing was changed." in shown.words
    assert "Nothing was changed. a ✕ failed the usage limit was reached Transcript" in shown.words
    assert "2 findings" in shown.words
    assert f"/ui/jobs/{last.job_id}" in shown.read.links


async def test_a_huge_task_is_small_and_shows_the_jobs_of_a_batch_on_demand(service: Service, ann: Surfer) -> None:
    planted.played(service, 200, 600)
    shown = await ann.open(TREE)
    assert "earlier batches" in shown.words
    assert len(shown.html) < 60_000
    [last] = [link for link in shown.read.links if link.startswith(f"{TREE}?unfold=") and "earlier" not in link][-1:]
    unfolded = await ann.open(last)
    assert len(rows_of(unfolded.html)) > len(rows_of(shown.html))
    assert "earlier batches" not in (await ann.open(f"{TREE}?unfold=earlier")).words


async def test_what_is_spent_stands_on_one_line_and_against_every_bound(service: Service, ann: Surfer) -> None:
    spent = {"usage": {"input_tokens": 40_000, "output_tokens": 1200}, "cost_usd": 0.62}
    opened = seeds.task(opened_at=time.time() - 935, paused_seconds=200.0)
    seeds.write(service, opened, seeds.job(), leg(1, "a", **spent), leg(2, "b"))
    shown = await ann.open(TREE)
    bounds = Bounds()
    for view in (TREE, TIMELINE, f"{TREE}/changes", f"{TREE}/log"):
        summed = "3 jobs, 41k tokens, $0.62, 12 min 15 s at work, 3 min 20 s waiting for you"
        assert summed in (await ann.open(view)).words, view
    assert "Limit Used Left Jobs and retries 2 (limit 64)" in shown.words
    assert f"{bounds.max_delegation_total_jobs - 2} left" in shown.words
    assert "Tokens 41 200 no limit" in shown.words
    assert f"Depth 1 (limit {bounds.max_delegation_depth}) Width 2 (limit {bounds.max_delegation_width})" in shown.words
    assert shown.html.count("<meter") == 4


async def test_whoever_was_asked_and_whoever_answered_stays_on_the_page(service: Service, ann: Surfer) -> None:
    asked = QuestionRecord(id="store", prompt="Which store?", job_id=ROOT, answer="redis")
    over: dict[str, Any] = {
        "end": RoundEnd.ANSWERED,
        "closed_at": time.time(),
        "closed": "answered by ben, in the terminal at noon",
    }
    one = seeds.round_(questions=(asked,), **over)
    two = seeds.round_(round_id=f"{ROOT}-r2", number=2, opened_at=2.0)
    seeds.write(service, seeds.task(state=TaskState.AWAITING_HUMAN), seeds.job(), one, two)
    shown = await ann.open(TREE)
    assert "Which store? redis answered by ben, in the terminal at noon" in shown.words
    assert f"#round-{ROOT}-r2" in shown.read.links
    assert f"#round-{ROOT}-r1" not in shown.read.links
    assert shown.form("/ui/attention/say").fields["seen"][0].startswith(f"{ROOT}|2|")


async def test_a_job_that_asked_reads_so_in_outline_timeline_and_graph(service: Service, ann: Surfer) -> None:
    asked = QuestionRecord(id="store", prompt="Which store?", job_id=ROOT)
    job = seeds.job(state=JobState.BLOCKED, started_at=1.0, ended_at=2.0)
    seeds.write(service, seeds.task(state=TaskState.AWAITING_HUMAN), job, leg(1, "a"), seeds.round_(questions=(asked,)))
    shown, drawn = await ann.open(TREE), await ann.open(TIMELINE)
    assert "blocked" not in shown.words + drawn.words
    assert (shown.html.count("asks_you"), drawn.html.count("asks_you")) == (1, 3), "outline; timeline and graph"


async def test_any_job_names_its_tree_and_nobody_s_job_names_none(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(title="Limit it"), seeds.job(), leg(1, "a"))
    assert "Limit it" in (await ann.open(f"{TREE}.1")).words
    missing, odd = await ann.open("/ui/trees/job-ffffffffffff"), await ann.open("/ui/trees/nothing")
    assert (missing.status, odd.status) == (404, 400)
    assert "no job job-ffffffffffff" in missing.words
    assert "service job list" in odd.words


async def test_what_agents_wrote_is_text(service: Service, ann: Surfer) -> None:
    words = {"agent": HOSTILE, "summary": HOSTILE, "delegation_id": HOSTILE, "model": HOSTILE, "phase": HOSTILE}
    task = seeds.task(title=HOSTILE, state=TaskState.BLOCKED, reason=HOSTILE, next=HOSTILE)
    asked = QuestionRecord(id="x", prompt=HOSTILE, job_id=ROOT, answer=HOSTILE)
    seeds.write(
        service,
        task,
        seeds.job(),
        leg(1, "x", **{**words, "reason": HOSTILE}),
        seeds.round_(questions=(asked,), said=HOSTILE, closed=HOSTILE),
        seeds.event(1, message=HOSTILE, kind="x<b>"),
    )
    for view in VIEWS:
        shown = await ann.open(f"{TREE}{view}")
        assert shown.status == 200
        assert "alert(1)" in shown.words
        assert "<script>" not in shown.html
        assert "<img" not in shown.html
        assert "x<b>" not in shown.html
        assert "\u202e" not in shown.html


async def test_the_page_leads_to_temporal_while_its_web_ui_is_there(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(), seeds.job())
    assert "Temporal does not answer" in (await ann.open(TREE)).words
    assert "Open in Temporal" not in (await ann.open(TREE)).words
    lock = FileLock.take(service.home.daemon_lock, wait=0)
    assert lock
    lock.mark(os.getpid())
    state = {"pid": os.getpid(), "phase": "running", "started_at": "2026-01-01T00:00:00Z", "version": "1"}
    where = {"ui_url": "http://127.0.0.1:8791/ui/temporal", "namespace": "mine"}
    service.home.daemon_state.write_text(json.dumps(state | where))
    links = (await ann.open(TREE)).read.links
    lock.release()
    assert f"/ui/temporal/namespaces/mine/workflows/{ROOT}" in links


async def test_only_orders_that_can_be_taken_are_offered(service: Service, ann: Surfer) -> None:
    offered: dict[str, set[str]] = {}
    ways = {"open": "", "blocked": f"service job retry {ROOT}.1", "done": ""}
    for number, (state, what_next) in enumerate(ways.items()):
        root = f"job-{number:012d}"
        waits_for = WaitsFor.RETRY if what_next else WaitsFor.NOTHING
        following = {"waits_for": waits_for, "to_retry": f"{root}.1" if what_next else ""}
        following |= {"next": what_next.replace(ROOT, root)}
        task = seeds.task(root, state=TaskState(state), **following)
        seeds.write(
            service, task, seeds.job(root, state=JobState.FAILED), seeds.job(f"{root}.1", state=JobState.FAILED)
        )
        forms = (await ann.open(f"/ui/trees/{root}")).read.forms
        offered[state] = {form.action.replace(root, "R") for form in forms} - {"/ui/leave", ""}
    assert offered == {
        "open": {"/ui/trees/R/kill"},
        "blocked": {"/ui/jobs/R.1/retry", "/ui/trees/R/dismiss"},
        "done": set(),
    }


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", ["open", "asks", "fails", "blocked", "conflict", "merged"])
async def test_what_ends_or_removes_something_stands_in_the_menu_at_the_title_alone(
    service: Service, ann: Surfer, tmp_path: Path, kind: str, view: str
) -> None:
    match kind:
        case "open":
            seeds.write(service, seeds.task(), seeds.job())
        case "asks":
            seeds.paused(service)
        case "fails":
            seeds.paused(service, kind="failure", verbs=("retry", "continue", "abort", "extend"), questions=())
        case "blocked":
            waits = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY, "to_retry": f"{ROOT}.1"}
            seeds.write(service, seeds.task(**waits), seeds.job(), leg(1, "a", state=JobState.FAILED))
        case "conflict":
            planted.clashing(service, tmp_path)
        case _:
            planted.writers(service, tmp_path, {"a": ("a.py", "a\n")})
    html = (await ann.open(f"{TREE}{view}")).html
    before, menu = html.split('<details class="actions"', 1)
    inside, after = menu.split('<nav class="tabs"', 1)
    assert 'class="danger"' in inside or (view, kind) == ("", "asks")
    assert "danger" not in before + after
    assert "<code>service job" not in before + after, "nor is a command in a person's way"


async def test_an_order_that_reaches_nobody_is_refused_with_a_command(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(), seeds.job())
    form = (await ann.open(TREE)).form(f"{TREE}/kill")
    assert {words for _, _, words in form.buttons} == {"End the task", "End the task now"}
    shown = await ann.send(form, "End the task now")
    assert shown.status == 503
    assert "Temporal" in shown.words


async def test_all_legs_are_merged_at_once(service: Service, ann: Surfer, tmp_path: Path) -> None:
    repo = planted.writers(service, tmp_path, {"a": ("a.py", "a\n"), "b": ("b.py", "b\n")})
    shown = await ann.open(CHANGES)
    shown = await ann.send(shown.form(f"{TREE}/branches"), "Merge all 2")
    assert f"{ROOT}.1 : is merged into service/{seeds.TASK}" in shown.words
    assert f"git -C {repo} merge service/{seeds.TASK}" in shown.words
    assert "b.py" in run_git(repo, "ls-tree", "--name-only", f"service/{seeds.TASK}")
    assert "Merge all" not in shown.words
    events = (await ann.open(LOG)).words.split("Events")[1]
    assert "ann@desk, on the page merged" in events


async def test_chosen_legs_are_dropped_each_with_its_own_outcome(service: Service, ann: Surfer, tmp_path: Path) -> None:
    repo = planted.writers(service, tmp_path, {"a": ("a.py", "a\n"), "b": ("b.py", "b\n"), "c": ("c.py", "c\n")})
    first, second = f"{ROOT}.1", f"{ROOT}.2"
    shown = await ann.open(CHANGES)
    shown = await ann.send(shown.form(f"{TREE}/branches"), "Merge the chosen", leg=first)
    shown = await ann.send(shown.form(f"{TREE}/branches"), "Drop the chosen", leg=[first, second])
    assert f"{first} : service/{first} is dropped" in shown.words
    assert f"{second} : service/{second} has 1 commit not in" in shown.words
    shown = await ann.send(shown.form(f"{TREE}/branches"), "Drop the chosen", leg=second, force="yes")
    assert f"{second} : service/{second} is dropped" in shown.words
    assert set(run_git(repo, "branch", "--list", "service/job*", "--format=%(refname:short)").split()) == {
        f"service/{ROOT}.3"
    }


async def test_a_conflict_names_legs_files_and_the_way_out_and_changes_nothing(
    service: Service, ann: Surfer, tmp_path: Path
) -> None:
    planted.writers(service, tmp_path, {"a": ("limiter.py", "limit = 2\n"), "b": ("limiter.py", "limit = 3\n")})
    shown = await ann.open(CHANGES)
    shown = await ann.send(shown.form(f"{TREE}/branches"), "Merge all 2")
    assert shown.status == 409
    assert "conflicts with part a" in shown.words
    assert "limiter.py; nothing was changed. Try:" in shown.words
    assert f"<pre><code>service job merge {ROOT}.1\ngit -C " in shown.html, "commands to copy, each a line of its own"
    assert "merge --no-ff" in shown.words
    assert shown.html.count('<span class="state unmerged">') == 2


@pytest.mark.parametrize("legs", [[], ["job-ffffffffffff"]])
async def test_a_merge_of_no_leg_of_this_tree_does_nothing(
    service: Service, ann: Surfer, tmp_path: Path, legs: list[str]
) -> None:
    planted.writers(service, tmp_path, {"a": ("a.py", "a\n")})
    seeds.write(service, seeds.task("job-ffffffffffff"), seeds.job("job-ffffffffffff"))
    form = (await ann.open(CHANGES)).form(f"{TREE}/branches")
    shown = await ann.send(form, "Merge the chosen", leg=legs)
    assert shown.status == 400
    assert "nothing was done" in shown.words


@pytest.mark.ruling("L1")
@pytest.mark.parametrize("page", ["/ui/trees/", "/ui/jobs/"])
async def test_what_it_belongs_to_is_a_link(service: Service, ann: Surfer, page: str) -> None:
    seeds.repo(service, github="acme/web")
    seeds.write(service, seeds.task(), seeds.job(pull_request=7))
    shown = await ann.open(f"{page}{ROOT}")
    assert '<a href="https://github.com/acme/web/pull/7">pull request #7 of acme/web</a>' in shown.html
    seeds.repo(service)
    shown = await ann.open(f"{page}{ROOT}")
    assert "github.com" not in shown.html
    assert "pull request #7" in shown.words


@pytest.mark.ruling("G1.cut")
async def test_a_tree_that_was_cut_short_says_so_with_the_way_on(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(**CUT), seeds.job(state=JobState.SUCCEEDED, ended_at=9.0))
    for page in (f"/ui/trees/{seeds.ROOT}", f"/ui/jobs/{seeds.ROOT}", "/ui/trees"):
        shown = await ann.open(page)
        assert "cut short" in shown.words, page
        assert page.startswith("/ui/jobs") or "the lead asked for 60 parts, the limit is 16" in shown.words, page
    assert CUT["next"] in (await ann.open(f"/ui/trees/{seeds.ROOT}")).words


async def test_what_was_not_measured_is_no_zero_and_no_time_is_older_than_the_product(
    service: Service, ann: Surfer
) -> None:
    over: dict[str, Any] = {"state": TaskState.DONE, "opened_at": 0.0, "ended_at": time.time()}
    seeds.write(service, seeds.task(**over), seeds.job(state=JobState.SUCCEEDED, ended_at=2.0))
    shown = await ann.open(TREE)
    assert "<li>1 job, tokens and cost not measured, unknown at work</li>" in shown.html
    assert "started at an unknown time" in shown.words
    assert "$0.00" not in shown.words.split("Limit")[0]
    assert not re.search(r"\d{4,} d", shown.words), "nothing began in 1970"


async def test_a_task_that_is_done_says_which_part_failed(service: Service, ann: Surfer) -> None:
    over: dict[str, Any] = {"state": TaskState.DONE, "ended_at": time.time()}
    last: dict[str, Any] = {"continuation": "finalize", "decision": "approved", "state": JobState.SUCCEEDED}
    parts = leg(1, "a", state=JobState.FAILED), leg(2, "b", state=JobState.FAILED), leg(3, "b")
    seeds.write(service, seeds.task(**over), seeds.job(), *parts, leg(4, "x", **last | {"delegation_id": None}))
    words = (await ann.open(TREE)).words
    assert "Done without part a, which failed: the lead approves the result. Nothing was changed." in words, (
        "b was done again"
    )
