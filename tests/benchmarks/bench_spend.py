"""Time to sum up the spend with 100,000 jobs in the store, and to write a job there."""

import random
import sys
import tempfile
import time
from pathlib import Path

from sqlalchemy import Engine, insert, text

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from activities.settings.home import Home
from activities.store import job_rows, schema
from activities.store.database import open_store
from bridge.operations.jobs import spend
from bridge.operations.service import Service
from tests.bridge import seeds
from workflows.model.rows import Records
from workflows.model.spend import Usage
from workflows.model.states import JobState

JOBS = 100_000
DAY = 86_400


def fill(store: Engine, days: int) -> None:
    """Insert jobs of so many days: 20 agents, 12 repositories, 5 models."""
    now = time.time()
    like = seeds.job(summary="summary " * 40).model_dump(mode="json", exclude={"usage"})
    rows = []
    for number in range(JOBS):
        at = now - random.random() * days * DAY
        rows.append(
            like
            | {"job_id": f"{seeds.ROOT}.{number}", "agent": f"agent-{number % 20}", "repo": f"acme/{number % 12}"}
            | {"model": f"model-{number % 5}", "input_tokens": 1000, "output_tokens": 50, "cost_usd": 0.01}
            | {"queued_at": at, "started_at": at + 1, "ended_at": at + 60}
        )
    with store.begin() as connection:
        connection.execute(text("DELETE FROM jobs"))
        connection.execute(insert(schema.jobs), rows)


def time_writes(store: Engine, first: int) -> float:
    """Return the milliseconds of the three writes of a job's life, as trees write them."""
    began, most = time.perf_counter(), 300
    for number in range(first, first + most):
        job = seeds.job(f"job-{number:012x}.1", summary="summary " * 40, model="model-1", queued_at=time.time())
        running = job.model_copy(update={"state": JobState.RUNNING, "started_at": time.time(), "revision": 2})
        used = {"usage": Usage(input_tokens=1000, output_tokens=50), "cost_usd": 0.01, "ended_at": time.time()}
        over = running.model_copy(update=used | {"state": JobState.SUCCEEDED, "revision": 3})
        for record in (job, running, over):
            job_rows.write(store, Records(jobs=(record,)))
    return (time.perf_counter() - began) / most * 1000


def main(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).ensure()
        if url:
            home.config.write_text(f'[store]\nurl = "{url}"\n')
        service = Service(home)
        store = open_store(home, url)
        for days in (365, 90, 30):
            fill(store, days)
            took = []
            for _ in range(10):
                start = time.perf_counter()
                spend.find(service)
                took.append(time.perf_counter() - start)
            print(f"{JOBS:,} jobs of {days} days, the last 30 added up: {min(took) * 1000:.0f} ms at best")
        print(
            f"a job written three times: {min(time_writes(store, first) for first in (0, 1000, 2000)):.1f} ms at best"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
