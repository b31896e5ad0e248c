"""The figures for monitoring, on both databases."""

import pytest
from sqlalchemy import Engine, insert, select, update

from activities.store import figures, job_rows, schema
from activities.store.figures import ModelUsage, OpenRounds
from activities.store.queries import clock
from activities.store.registry import agent_rows, host_rows
from tests.rows import ROOT, event, job, round_, task
from workflows.model.event_kinds import EventKind
from workflows.model.rows import Records
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState
from workflows.model.workers import Worker

pytestmark = pytest.mark.ruling("Q9")

OTHER = "job-0123456789ac"


def test_the_figures_are_those_of_the_rows(store: Engine) -> None:
    used = {"usage": Usage(input_tokens=100, output_tokens=10), "cost_usd": 0.5, "model": "large"}
    for root, state in ((ROOT, JobState.QUEUED), (OTHER, JobState.RUNNING)):
        task_ = task(root, state=TaskState.OPEN)
        event_ = event(1, root, kind=EventKind.DELEGATION_WIDTH_EXCEEDED)
        job_rows.write(store, Records(task=task_, jobs=(job(root, state=state, **used),), events=(event_,)))
    job_rows.write(store, Records(task=task(ROOT, state=TaskState.AWAITING_HUMAN, revision=9), rounds=(round_(ROOT),)))
    host_rows.see(store, "web-1", slots=8, started_at=1.0)
    with store.begin() as connection:
        for root in (ROOT, OTHER):
            connection.execute(insert(schema.trees).values(root_job_id=root, host="web-1", start={}, revision=1))
        begun = {"job_id": OTHER, "attempt": job(OTHER).attempt, "host": "web-2", "run_dir": "/run", "started_at": 1.0}
        connection.execute(insert(schema.attempts), begun)
        note = {"notification_id": "n", "root_job_id": ROOT, "job_id": ROOT, "kind": "k", "message": "m", "at": 1.0}
        connection.execute(insert(schema.notifications), note)
        sent = {"notification_id": "n", "attempts": 1, "error": "refused", "delivered_at": None}
        rows = [sent | {"channel": "webhook"}, sent | {"channel": "log", "error": "", "delivered_at": 2.0}]
        connection.execute(insert(schema.deliveries), rows)
        connection.execute(
            insert(schema.github_account).values(
                name="github", login="bot", kind="user", seen_at=1.0, quota=5000, remaining=1200,
                reset_at=select(clock() + 60.0).scalar_subquery(), failures=0, problem="", wrote_at=1.0,
                checks_refused=False,
            )
        )  # fmt: skip
    agent_rows.add(store, Worker(name="scout", runtime="shell", command=("cat",)), ())
    with store.begin() as connection:
        connection.execute(update(schema.agents).values(require=["gpu", "big"]))
        placed = {"job_id": ROOT, "attempt": job().attempt, "host": "web-3", "repo": "acme/shop", "at": 1.0}
        connection.execute(insert(schema.placements), placed)
    numbers = figures.read(store)
    (host,) = numbers.hosts
    assert (host.seen.name, host.slots, host.taken, host.draining, host.lost) == ("web-1", 8, 0, False, False)
    assert {(each.host, each.runtime, each.state, each.labels, each.count) for each in numbers.jobs} == {
        ("web-3", job().runtime, "queued", ("big", "gpu"), 1),
        ("web-2", job().runtime, "running", ("big", "gpu"), 1),
    }
    assert numbers.trees == {"open": 1, "awaiting_human": 1}
    assert numbers.rounds == (OpenRounds("ask", 1, round_(ROOT).opened_at),)
    assert {kind for kind in EventKind if kind.endswith(("_exceeded", "_exhausted"))} == set(figures.BOUNDS)
    assert numbers.bounds == {"delegation_width_exceeded": 2}
    assert numbers.failing == {"webhook": 1}
    assert numbers.quota is not None
    assert (numbers.quota.limit, numbers.quota.remaining) == (5000, 1200)
    assert 55 < numbers.quota.reset_at - numbers.now < 61
    assert figures.usage(store) == [ModelUsage("large", 200, 20, 1.0)]
    asked = [event(number, ROOT, kind=EventKind.RESULT_REPAIRED) for number in (7, 8)]
    job_rows.write(store, Records(events=tuple(asked)))
    assert figures.repairs(store) == {(job().runtime, "large"): 2}


def test_an_empty_store_has_figures_too(store: Engine) -> None:
    numbers = figures.read(store)
    assert (numbers.hosts, numbers.jobs, numbers.rounds, numbers.quota) == ((), (), (), None)
    assert (figures.usage(store), figures.repairs(store)) == ([], {})
