"""The page of all trees: newest first, filtered, searched, paged."""

import time
from typing import Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import insert

from activities.store import schema
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard.surfer import Shown, Surfer
from tests.bridge.seeds import ROOT
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("M4")
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
    for words in ("All is well", "started 1 h 1 min ago", "1 of 2 jobs ended", "12 345 tokens", "scout, to ask"):
        assert words in shown.words.split("More about Raise the limit")[1]


async def test_a_tree_that_waits_says_for_whom_and_with_which_question(service: Service, ann: Surfer) -> None:
    seeds.paused(service)
    shown = await ann.open("/ui/trees")
    assert "Needs you 1 ? needs you look acme/shop you: which?" in shown.words
    assert f'title="service resume {ROOT}"' in shown.html


async def test_filters_narrow_and_keep_what_they_say(service: Service, ann: Surfer) -> None:
    other = "job-9999999999zz"
    seeds.write(service, seeds.task(title="Raise", opened_at=1.0), seeds.job(), seeds.job(f"{ROOT}.1", agent="builder"))
    done = {"state": TaskState.DONE, "ended_at": 3.0, "repo": "acme/other", "opened_at": 2.0}
    seeds.write(service, seeds.task(other, title="Lower", **done), seeds.job(other, pull_request=7))
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


async def test_an_unknown_state_and_a_bad_cursor_are_refused_in_a_sentence(ann: Surfer) -> None:
    for filters, why in (({"state": "dun"}, "'dun' is not a state of a tree"), ({"cursor": "x"}, "invalid cursor")):
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
