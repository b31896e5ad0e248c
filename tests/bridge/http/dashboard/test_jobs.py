"""The page of all jobs: newest first, filtered, searched, paged (ruling M4)."""

import time
from typing import Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import event, insert

from activities.store import schema
from activities.store.job_rows import JobFilter
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard.surfer import Shown, Surfer
from tests.bridge.seeds import ROOT
from workflows.contract.models import Decision
from workflows.model.spend import Usage
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("M4")

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(1)> \u202e\"'&"


async def seek(ann: Surfer, **filters: str) -> Shown:
    return await ann.open(f"/ui/jobs?{urlencode(filters)}")


def links(shown: Shown) -> list[str]:
    """Return the links of the rows, in order."""
    return [link for link in shown.read.links if link.startswith(("/ui/trees/", "/ui/jobs/"))]


async def test_where_no_job_is_it_is_said_how_to_start_one(ann: Surfer) -> None:
    shown = await ann.open("/ui/jobs")
    assert (shown.status, "No jobs yet" in shown.words, "service agent ask NAME" in shown.words) == (200, True, True)
    assert "No job matches" in (await seek(ann, agent="nobody")).words


async def test_a_row_tells_of_a_job_and_leads_to_it(service: Service, ann: Surfer) -> None:
    ended = {
        "state": JobState.SUCCEEDED,
        "decision": Decision.CHANGES_REQUESTED,
        "cost_usd": 1.5,
        "price_assumed": True,
    }
    used = Usage(input_tokens=12_000, output_tokens=345)
    seeds.write(service, seeds.task(title="Raise the limit"), seeds.job(queued_at=time.time() - 3700))
    seeds.write(service, seeds.job(f"{ROOT}.1", agent="builder", usage=used, summary="All is well", **ended))
    shown = await ann.open("/ui/jobs")
    assert links(shown) == [f"/ui/jobs/{ROOT}.1", f"/ui/trees/{ROOT}"]
    assert "● succeeded leg of Raise the limit acme/shop builder ~$1.50" in shown.words
    for words in ("All is well", "builder (reads only)", "Result: changes requested", "12k tokens"):
        assert words in shown.words.split("More about leg")[1]
    assert "◐ running Raise the limit acme/shop scout 1 h More about" in shown.words


async def test_a_continuation_and_a_failed_preflight_are_told(service: Service, ann: Surfer) -> None:
    why = {"preflight_failed": "no agent mason"}
    seeds.write(service, seeds.task(), seeds.job(**why))
    seeds.write(service, seeds.job(f"{ROOT}.1", delegation_id=None, continuation="corrective"))
    assert "scout: corrects its plan of look" in (await ann.open("/ui/jobs")).words
    shown = await seek(ann, preflight_failed="1")
    assert (links(shown), "No agent for a part: no agent mason" in shown.words) == ([f"/ui/trees/{ROOT}"], True)


async def test_a_job_that_asked_reads_answered_once_it_is(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(), seeds.job(state=JobState.BLOCKED), seeds.round_())
    assert "▲ asks you look" in (await ann.open("/ui/jobs")).words
    assert "▲ asks you" in (await ann.open(f"/ui/jobs/{ROOT}")).words
    seeds.write(service, seeds.round_(end="answered", closed_at=3.0, revision=2))
    assert "● answered look" in (await ann.open("/ui/jobs")).words


async def test_filters_narrow_and_keep_what_they_say(service: Service, ann: Surfer) -> None:
    other = "job-9999999999zz"
    seeds.repo(service)
    seeds.write(service, seeds.task(title="Raise"), seeds.job(state=JobState.FAILED))
    seeds.write(service, seeds.job(f"{ROOT}.1", agent="builder"))
    seeds.write(service, seeds.task(other, title="Lower"), seeds.job(other, repo="acme/other"))
    root, leg, lower = f"/ui/trees/{ROOT}", f"/ui/jobs/{ROOT}.1", f"/ui/trees/{other}"
    for filters, names in (
        ({"repo": "acme/shop"}, {root, leg}),
        ({"agent": "builder"}, {leg}),
        ({"state": "failed"}, {root}),
        ({"roots": "1"}, {root, lower}),
        ({"q": "raise"}, {root, leg}),
        ({"q": " lower "}, {lower}),
        ({"q": ROOT}, {root, leg}),
        ({"q": "builder", "roots": "1"}, set()),
        ({"q": "state:failed"}, {root}),
        ({"q": "agent:builder repo:acme/shop raise"}, {leg}),
        ({"q": "roots:1 repo:acme/other"}, {lower}),
    ):
        shown = await seek(ann, **filters)
        assert set(links(shown)) == names, filters
        fields = shown.form("/ui/jobs").fields
        kept = {name: fields[name] for name in filters if name != "state"}
        words = " ".join(word for word in filters.get("q", "").split() if ":" not in word)
        given = filters | ({"q": words} if "q" in filters else {})
        assert kept == {name: [value] for name, value in given.items() if name != "state"}
    assert '<option value="failed" selected>' in (await seek(ann, state="failed")).html
    assert '<option value="acme/shop">' in (await ann.open("/ui/jobs")).html, "those that are known are offered"


async def test_what_is_no_state_no_place_or_too_long_is_refused_in_a_sentence(ann: Surfer) -> None:
    for filters, why in (
        ({"state": "done"}, "'done' is not a job state; they are queued"),
        ({"cursor": "x"}, "invalid cursor"),
        ({"q": "x" * 201}, "a search has at most 200 characters"),
    ):
        shown = await seek(ann, **filters)
        assert (shown.status, why in shown.words) == (400, True), shown.words


async def test_pages_follow_one_another_and_keep_the_filters(service: Service, ann: Surfer) -> None:
    many(service, 120)
    seen: list[str] = []
    shown = await seek(ann, q="number", agent="")
    while True:
        seen += links(shown)
        older = [link for link in shown.read.links if "cursor=" in link]
        if not older:
            break
        assert "q=number" in older[0]
        shown = await ann.open(older[0])
        assert "/ui/jobs?q=number" in shown.read.links, "the way back to the newest"
    assert seen == [f"/ui/trees/{root_of(n)}" for n in reversed(range(120))]


async def test_what_agents_and_people_wrote_is_text(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(title=HOSTILE), seeds.job(agent="<b>x", summary=HOSTILE))
    for shown in (await ann.open("/ui/jobs"), await seek(ann, q=HOSTILE.partition(" ")[0])):
        assert "<script>alert" not in shown.html
        assert "<img" not in shown.html
        assert "\u202e" not in shown.html
        assert "\\u202e" in shown.words
        assert "<script>alert(1)</script>" in shown.words


def test_a_search_looks_at_one_index_and_no_row(service: Service) -> None:
    """A search scans every job; `tests/benchmarks/bench_dashboard.py` measures how long that takes."""
    asked: list[tuple[str, Any]] = []
    event.listen(service.store, "before_cursor_execute", lambda _c, _k, text, given, *_: asked.append((text, given)))
    assert jobs.find(service, JobFilter(text="nobody wrote this")) == []
    query, given = next(each for each in asked if "LIKE" in each[0])
    with service.store.connect() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", given).all()
    assert any("COVERING INDEX jobs_by_time" in str(step) for step in plan), plan


def root_of(number: int) -> str:
    return f"job-{number:012d}"


def many(service: Service, number: int) -> None:
    """Seed so many trees of one job."""
    title = "a title as long as titles are, with the number of its tree in it: "
    task = seeds.task().model_dump(mode="json")
    job = seeds.job(summary="What it said at the end. " * 8).model_dump(mode="json", exclude={"usage"})
    job |= {"input_tokens": 1000, "output_tokens": 10}
    ids = [(n, {"root_job_id": root_of(n)}) for n in range(number)]
    tasks = [task | root | {"task_id": f"task-{n}", "title": f"{title}{n}"} for n, root in ids]
    rows = [job | root | {"job_id": root_of(n), "queued_at": float(n)} for n, root in ids]
    with service.store.begin() as connection:
        connection.execute(insert(schema.tasks), tasks)
        connection.execute(insert(schema.jobs), rows)


@pytest.mark.ruling("L1")
async def test_jobs_are_found_by_what_they_belong_to(service: Service, ann: Surfer) -> None:
    other = "job-bbbbbbbbbbbb"
    seeds.write(service, seeds.task(), seeds.job(pull_request=7))
    seeds.write(service, seeds.task(other), seeds.job(other, issue=7))
    assert links(await seek(ann, pr="7")) == [f"/ui/trees/{ROOT}"]
    assert links(await seek(ann, issue="7")) == [f"/ui/trees/{other}"]
    assert (await seek(ann, pr="seven")).status == 400
