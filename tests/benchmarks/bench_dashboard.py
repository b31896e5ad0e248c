"""Cost of the dashboard's pages: `python -m tests.benchmarks.bench_dashboard [jobs] [waiting]`.

Uses a bridge of its own, over a store of many jobs in which many things of every kind wait. First it requests `GET
/ui/` and other pages repeatedly, for their time and size: among them those of trees of 1, 60 and 1,000 jobs, whose
heights on a phone it measures in a browser. Then it keeps idle pages open, each with its live stream, for the bridge's
share of one processor. Prints figures for people; asserts nothing (ruling M8: 100 ms at the 95th percentile, 150 KB).
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import insert

from activities.settings.home import Home
from activities.store import schema
from bridge.machine import dashboard_link, token
from bridge.operations.service import Service
from tests.benchmarks.bench_bridge import free_port, until_answered
from tests.benchmarks.bench_paused import Process, running
from tests.bridge import seeds
from tests.bridge.http.dashboard import planted
from tests.e2e.browser import person, started
from workflows.model.rows import RETRY, QuestionRecord
from workflows.model.states import JobState, TaskState, WaitsFor

TREE = 10
"""Number of jobs in each tree."""
SIZES = (1, 60, 1000)
"""Numbers of jobs of the trees whose pages are measured."""
CALLS, STREAMS, REST = 60, 50, 20.0
"""Requests of each page: all together stay below the rate limit of 600 a minute."""
PROMPT = "Which of the two should the limiter use, and what do we do with what is in the other one? " * 2


def fill(service: Service, jobs: int, waiting: int) -> None:
    """Insert ended trees, and so many waiting things: half of them questions, the others of every other kind."""
    now, rows = time.time(), dict[str, list[dict[str, Any]]]()

    def add(table: str, row: dict[str, Any]) -> None:
        rows.setdefault(table, []).append(row)

    for number in range(jobs // TREE):
        root, at = f"job-{number:012d}", now - 1e6 + number
        kind = number % 10 if number < waiting else 10
        state, extra, first = _tree(kind, root, at)
        title = f"Task {number}: {PROMPT[:60]}"
        task = seeds.task(root, state=state, opened_at=at, title=title, **extra)
        add("tasks", task.model_dump(mode="json"))
        for leg in range(1 if kind == 8 else TREE):
            fields = {"state": JobState.SUCCEEDED, "queued_at": at, "ended_at": at + 9}
            more = {"delegation_id": f"leg-{leg}"} if leg else first
            job = seeds.job(f"{root}.{leg}" if leg else root, **(fields | more))
            used = {"input_tokens": 90_000, "output_tokens": 5_000, "cost_usd": 0.4}
            add("jobs", job.model_dump(mode="json", exclude={"usage"}) | used)
        _waits(kind, root, at, add)
    with service.store.begin() as connection:
        for table, records in rows.items():
            connection.execute(insert(schema.metadata.tables[table]), records)


def _tree(kind: int, root: str, at: float) -> tuple[TaskState, dict[str, Any], dict[str, Any]]:
    """Return the task's state, and further columns of its row and its root's row."""
    if kind < 5:
        return TaskState.AWAITING_HUMAN, {}, {}
    if kind < 8:
        fields = {"reason": "leg-3 failed: the tests are red", "next": f"{RETRY} {root}.3", "ended_at": at}
        fields |= {"waits_for": WaitsFor.RETRY, "to_retry": f"{root}.3"}
        return TaskState.BLOCKED, fields, {}
    if kind == 8:
        return TaskState.OPEN, {}, {"preflight_failed": "no agent `scuot`", "state": JobState.SUCCEEDED}
    return TaskState.DONE, {"ended_at": at}, {}


def _waits(kind: int, root: str, at: float, add: Any) -> None:
    if kind < 5:
        choices = ("keep both", "move it over", "drop it")
        asked = QuestionRecord(id="store", prompt=PROMPT, choices=choices, job_id=root)
        more = {"opened_at": at, "expires_at": at + 1e7, "digest": "d" * 64}
        add("rounds", seeds.round_(root, questions=(asked,), **more).model_dump(mode="json"))
    else:
        over: dict[str, Any] = {"closed_at": at, "closed": "answered by ann, in the terminal", "end": "answered"}
        add("rounds", seeds.round_(root, **over).model_dump(mode="json"))
    for number in range(6):
        kinds = ("tree_started", "job_queued", "job_begun", "job_ended", "retry_requested", "tree_ended")
        add("events", seeds.event(number, root, at=at, kind=kinds[number], seq=number).model_dump(mode="json"))
    note = {"notification_id": f"{root}-e1", "root_job_id": root, "job_id": root, "kind": "round_opened"}
    add("notifications", note | {"message": "it waits", "at": at})
    done = None if kind == 9 else at
    error = "exit 1" if kind == 9 else ""
    delivery = {"notification_id": f"{root}-e1", "channel": "command", "attempts": 1, "delivered_at": done}
    add("deliveries", delivery | {"error": error})


async def measure_page(client: httpx.AsyncClient, bridge: Process, path: str) -> None:
    took, answer = [], await client.get(path)
    before = bridge.cpu
    for _ in range(CALLS):
        begun = time.perf_counter()
        answer = await client.get(path)
        took.append((time.perf_counter() - begun) * 1000)
    used = (bridge.cpu - before) / CALLS * 1000
    assert answer.status_code == 200
    waiting = answer.text.partition('data-waiting="')[2].partition('"')[0]
    cuts = statistics.quantiles(took, n=100)
    print(
        f"GET {path} with {waiting or 0} waiting: p50 {cuts[49]:.1f} ms, p95 {cuts[94]:.1f} ms,"
        f" {used:.1f} ms of a processor each, {len(answer.content) / 1000:.0f} KB"
    )


def measure_heights(service: Service, base: str, paths: list[str]) -> None:
    with started() as browser, person(browser, base, width=360) as ann:
        tab = ann.enter(service, "/ui/spend")
        for path in paths:
            tab.goto(f"{base}{path}")
            height = tab.evaluate("document.documentElement.scrollHeight")
            print(f"{path} on a phone: {height} px, {height / 800:.1f} screens of 800 px")


async def measure_streams(client: httpx.AsyncClient, bridge: Process) -> None:
    async def stream() -> None:
        async with client.stream("GET", "/ui/live/", timeout=None) as answer:
            async for _ in answer.aiter_bytes():
                pass

    open_ = [asyncio.create_task(stream()) for _ in range(STREAMS)]
    await asyncio.sleep(5)
    before = bridge.cpu
    await asyncio.sleep(REST)
    share = (bridge.cpu - before) / REST
    print(f"{STREAMS} open pages at rest: {share:.1%} of a processor, {bridge.megabytes:.0f} MB")
    for task in open_:
        task.cancel()
    await asyncio.gather(*open_, return_exceptions=True)


async def main(jobs: int, waiting: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        home, port = Home(Path(name) / "home").ensure(), free_port()
        home.config.write_text("[temporal]\nport = 1\n")
        service = Service(home)
        fill(service, jobs, waiting)
        trees = {size: f"job-{size:010d}ff" for size in SIZES}
        for size, root in trees.items():
            planted.played(service, size, 600, root=root)
        token.ensure(home)
        base = f"http://127.0.0.1:{port}"
        command = (sys.executable, "-P", "-m", "cli.main", "bridge", "serve", "--addr", f"127.0.0.1:{port}")
        with running(command, os.environ | {"SERVICE_HOME": str(home.root)}) as bridge:
            await until_answered(f"{base}/healthz", {})
            limits = httpx.Limits(max_connections=STREAMS + 5)
            async with httpx.AsyncClient(base_url=base, timeout=60, limits=limits, follow_redirects=True) as client:
                await client.get(f"/ui/enter?code={dashboard_link.make(home, 'bench')}&to=/ui/")
                for path in (
                    "/ui/",
                    "/ui/trees",
                    "/ui/trees?state=done",
                    "/ui/jobs",
                    "/ui/jobs?q=nobody+wrote+this",
                    "/ui/spend",
                    *(f"/ui/trees/{root}" for root in trees.values()),
                ):
                    await measure_page(client, bridge, path)
                heights = ["/ui/trees", *(f"/ui/trees/{root}" for root in trees.values())]
                await asyncio.to_thread(measure_heights, service, base, heights)
                await measure_streams(client, bridge)


if __name__ == "__main__":
    asyncio.run(main(*(int(word) for word in sys.argv[1:])) if sys.argv[1:] else main(100_000, 500))
