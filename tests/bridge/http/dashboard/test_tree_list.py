"""The page of all trees: newest first, filtered, searched, paged."""

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from sqlalchemy import insert

from activities.store import schema
from bridge.operations.orders import attention
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard import planted
from tests.bridge.http.dashboard.surfer import Shown, Surfer
from tests.bridge.seeds import ROOT
from workflows.contract.models import Action
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState, WaitsFor

pytestmark = pytest.mark.ruling("M4")
OTHER = "job-9999999999zz"
NOW, OVER = (f"State Task Repository {what} Spend Started" for what in ("Now", "Last report"))
HOSTILE = "<script>alert(1)</script> \u202e\"'&"


def links(shown: Shown) -> list[str]:
    return [link for link in shown.read.links if link.startswith("/ui/trees/")]


async def seek(ann: Surfer, **filters: str) -> Shown:
    return await ann.open(f"/ui/trees?{urlencode(filters)}")


async def test_where_no_tree_is_it_is_said_how_to_start_one(ann: Surfer) -> None:
    shown = await ann.open("/ui/trees")
    assert (shown.status, "No tasks yet" in shown.words, "service agent ask NAME" in shown.words) == (200, True, True)
    assert "No task matches" in (await seek(ann, agent="nobody")).words


async def test_a_row_tells_of_a_whole_tree_and_leads_to_it(service: Service, ann: Surfer) -> None:
    used: dict[str, Any] = {
        "usage": Usage(input_tokens=12_000, output_tokens=345),
        "cost_usd": 1.5,
        "price_assumed": True,
    }
    ended: dict[str, Any] = {"state": JobState.SUCCEEDED, "ended_at": 2.0, "summary": "All is well"}
    seeds.write(service, seeds.task(title="Raise the limit", opened_at=time.time() - 3700), seeds.job(**ended, **used))
    seeds.write(service, seeds.job(f"{ROOT}.1"))
    shown = await ann.open("/ui/trees")
    assert links(shown) == [f"/ui/trees/{ROOT}"]
    assert "◐ running Raise the limit acme/shop 1 of 2 jobs have ended ~$1.50 1 h More about Raise" in shown.words
    for words in ("All is well", "started 1 h 1 min ago", "1 of 2 jobs ended", "12k tokens", "scout (reads only)"):
        assert words in shown.words.split("More about Raise the limit")[1]


async def test_a_tree_that_waits_says_for_whom_and_with_which_question(service: Service, ann: Surfer) -> None:
    seeds.paused(service)
    shown = await ann.open("/ui/trees")
    assert f"Needs you 1 {NOW} ▲ needs you look acme/shop which?" in shown.words
    assert f'title="service resume {ROOT}"' in shown.html


async def test_filters_narrow_and_keep_what_they_say(service: Service, ann: Surfer) -> None:
    other = OTHER
    two(service)
    for filters, names in (
        ({"repo": "acme/other"}, [other]),
        ({"agent": "builder"}, [ROOT]),
        ({"state": "running"}, [ROOT]),
        ({"q": "lower"}, [other]),
        ({"pr": "7"}, [other]),
        ({"issue": "7"}, []),
        ({}, [ROOT, other]),
    ):
        shown = await seek(ann, **filters)
        assert links(shown) == [f"/ui/trees/{root}" for root in names], filters
    shown = await seek(ann, q="lower", state="done")
    assert shown.form("/ui/trees").fields["q"] == ["lower"]
    assert '<option value="done" selected>' in shown.html


@pytest.mark.parametrize(
    ("typed", "chips", "roots"),
    [
        ("state:running", ["state: running"], [ROOT]),
        ("state:ended", ["state: ended"], [OTHER]),
        ("repo:acme/other", ["repo: acme/other"], [OTHER]),
        ("agent:builder", ["agent: builder"], [ROOT]),
        ("pr:7", ["pr: 7"], [OTHER]),
        ("issue:7", ["issue: 7"], []),
        ("raise repo:acme/shop", ["repo: acme/shop"], [ROOT]),
        ("repo:acme/other raise", ["repo: acme/other"], []),
    ],
)
async def test_the_search_box_takes_filters_and_words(
    service: Service, ann: Surfer, typed: str, chips: list[str], roots: list[str]
) -> None:
    two(service)
    shown = await seek(ann, q=typed)
    assert links(shown) == [f"/ui/trees/{root}" for root in roots]
    assert [chip for chip in chips if f"{chip} \u00d7 , remove this filter" in shown.words] == chips
    assert ("No task matches" in shown.words) is not bool(roots)
    words = " ".join(word for word in typed.split() if ":" not in word)
    form = shown.form("/ui/trees").fields
    assert form["q"] == [words], "filters stand as chips, and in their fields"
    [key, value] = next(word for word in typed.split() if ":" in word).split(":")
    assert form[key] == [value] if key != "state" else f'<option value="{value}" selected>' in shown.html


async def test_a_chip_takes_its_filter_out_and_leaves_the_others(service: Service, ann: Surfer) -> None:
    two(service)
    shown = await seek(ann, q="raise repo:acme/other state:running")
    without = [link for link in shown.read.links if link.startswith("/ui/trees?")]
    assert without == ["/ui/trees?q=raise&repo=acme%2Fother", "/ui/trees?q=raise&state=running"]
    assert links(await ann.open(without[1])) == [f"/ui/trees/{ROOT}"]
    assert "/ui/trees" in shown.read.links, "Show all"


async def test_a_filter_of_the_box_counts_before_its_field(service: Service, ann: Surfer) -> None:
    two(service)
    assert links(await seek(ann, q="repo:acme/shop", repo="acme/other")) == [f"/ui/trees/{ROOT}"]


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("colour:red", "unknown filter 'colour'. Use one of: state, repo, agent, pr, issue"),
        ("stat:done", 'did you mean "state"?'),
        ("state:dun", "'dun' is not a state of a task; they are queued"),
        ("pr:seven", "'seven' is not the number of a pull request"),
        ("x" * 201, "a search has at most 200 characters"),
    ],
)
async def test_what_cannot_be_searched_for_is_said_beside_the_box(ann: Surfer, typed: str, why: str) -> None:
    shown = await seek(ann, q=typed)
    assert (shown.status, why in shown.words) == (400, True), shown.words
    assert shown.form("/ui/trees").fields["q"] == [typed], "what was typed is still there"
    assert "No task" not in shown.words


async def test_tasks_are_grouped_by_what_they_need(service: Service, ann: Surfer) -> None:
    done: dict[str, Any] = {"state": TaskState.DONE, "ended_at": 5.0}
    wrote: dict[str, Any] = {"action": Action.IMPLEMENT, "state": JobState.SUCCEEDED, "head_sha": "a" * 40}
    seeds.write(service, seeds.task(OTHER, title="old", **done), seeds.job(OTHER, state=JobState.SUCCEEDED))
    for root, kind in (("job-00000000000a", None), ("job-00000000000b", "merged"), ("job-00000000000c", "dropped")):
        event = [seeds.event(1, root, kind=f"branch_{kind}", at=6.0)] if kind else []
        seeds.write(service, seeds.task(root, title=kind or "fresh", **done), seeds.job(root, **wrote), *event)
    seeds.write(service, seeds.task("job-00000000000d", title="busy"), seeds.job("job-00000000000d"))
    seeds.paused(service)
    words = (await ann.open("/ui/trees")).words
    for heading, states in (
        ("Needs you 1", ["▲ needs you look"]),
        ("Running 1", ["◐ running busy"]),
        ("Ready to merge 1", ["● ready to merge fresh"]),
        ("Ended 3", ["⊘ dropped dropped", "● merged merged", "● done old"]),
    ):
        part = words.partition(heading)[2]
        assert part, (heading, words)
        places = [part.find(state) for state in states]
        assert -1 not in places, (heading, states, part)
        words = words.partition(heading)[2]
    assert links(await seek(ann, q="state:ready"))[0] == "/ui/trees/job-00000000000a"


async def test_work_is_merged_from_the_list(service: Service, ann: Surfer, tmp_path: Path) -> None:
    """Three clicks at most: unfold the line, and merge."""
    repo = planted.writers(service, tmp_path, {"a": ("limiter.py", "limit = 2\n")})
    shown = await ann.open("/ui/trees")
    assert "Ready to merge 1" in shown.words
    assert f"/ui/trees/{ROOT}/diff" in shown.read.links
    shown = await ann.send(shown.form(f"/ui/trees/{ROOT}/finish"), "Merge into my branch")
    assert (repo / "limiter.py").read_text() == "limit = 2\n"
    assert urlsplit(shown.address).path == "/ui/trees"
    assert f"Ended 1 {OVER} ● merged look" in shown.words
    assert "Merge into" not in shown.words


async def test_a_blocked_task_is_retried_from_the_list(service: Service, ann: Surfer) -> None:
    leg = f"{ROOT}.1"
    stuck: dict[str, Any] = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY, "to_retry": leg, "ended_at": 5.0}
    failed = seeds.job(leg, state=JobState.FAILED, reason="the tests are red")
    seeds.write(service, seeds.task(reason="leg failed", **stuck), seeds.job(state=JobState.SUCCEEDED), failed)
    form = (await ann.open("/ui/trees")).form(f"/ui/jobs/{leg}/retry")
    assert [words for _, _, words in form.buttons] == ["Retry leg"]


async def test_an_unknown_state_and_a_bad_cursor_are_refused_in_a_sentence(ann: Surfer) -> None:
    for filters, why in (({"state": "dun"}, "'dun' is not a state of a task"), ({"cursor": "x"}, "invalid cursor")):
        shown = await seek(ann, **filters)
        assert (shown.status, why in shown.words) == (400, True), shown.words


async def test_two_hundred_trees_of_a_thousand_jobs_are_small_pages_without_gap_or_repeat(
    service: Service, ann: Surfer
) -> None:
    roots = many(service, 200)
    seen: list[str] = []
    shown = await seek(ann, q="number")
    while True:
        assert len(shown.html.encode()) < 150_000
        seen += links(shown)
        older = [link for link in shown.read.links if "cursor=" in link]
        if not older:
            break
        assert "q=number" in older[0]
        shown = await ann.open(older[0])
    assert seen == [f"/ui/trees/{root}" for root in reversed(roots)]


async def test_what_agents_and_people_wrote_is_text(service: Service, ann: Surfer) -> None:
    ended: dict[str, Any] = {"state": JobState.SUCCEEDED, "ended_at": 2.0, "summary": HOSTILE}
    seeds.write(service, seeds.task(title=HOSTILE), seeds.job(**ended))
    shown = await seek(ann, q="<script>")
    assert "<script>alert" not in shown.html
    assert "\u202e" not in shown.html
    assert shown.words.count("<script>alert(1)</script> \\u202e") == 3, (
        "the title, the title of what unfolds, the summary"
    )


def two(service: Service) -> None:
    """Seed a task that runs, and one that is done."""
    seeds.write(service, seeds.task(title="Raise", opened_at=1.0), seeds.job(), seeds.job(f"{ROOT}.1", agent="builder"))
    done = {"state": TaskState.DONE, "ended_at": 3.0, "repo": "acme/other", "opened_at": 2.0}
    seeds.write(service, seeds.task(OTHER, title="Lower", **done), seeds.job(OTHER, pull_request=7))


def many(service: Service, number: int) -> list[str]:
    """Seed so many trees of five jobs, with texts as long as they are shown."""
    task = seeds.task().model_dump(mode="json")
    job = seeds.job(summary="What it said at the end. " * 8, ended_at=2.0).model_dump(mode="json", exclude={"usage"})
    job |= {"input_tokens": 1000, "output_tokens": 10}
    roots = [f"job-{place:012d}" for place in range(number)]
    title = "a title as long as titles are, with the number of its tree in it: "
    tasks = [
        task | {"root_job_id": root, "task_id": f"task-{place}", "title": f"{title}{place}", "opened_at": float(place)}
        for place, root in enumerate(roots)
    ]
    legs = [{"root_job_id": root, "job_id": f"{root}.{leg}" if leg else root} for root in roots for leg in range(5)]
    with service.store.begin() as connection:
        connection.execute(insert(schema.tasks), tasks)
        connection.execute(insert(schema.jobs), [job | leg for leg in legs])
    return roots


@pytest.mark.ruling("M1")
async def test_the_number_of_tasks_that_need_a_person_is_that_of_attention(service: Service, ann: Surfer) -> None:
    for number in range(25):
        seeds.paused(service, f"job-{number:012d}")
    shown = await ann.open("/ui/trees")
    assert f"Needs you 25 {NOW}" in shown.words
    assert attention.number(service) == 25


async def test_a_line_says_why_a_task_failed(service: Service, ann: Surfer) -> None:
    failed = {"state": TaskState.CANCELLED, "reason": "the first job failed: the tests are red"}
    seeds.write(service, seeds.task(**failed), seeds.job(state=JobState.FAILED))
    assert "look acme/shop the first job failed: the tests are red" in (await seek(ann)).words
