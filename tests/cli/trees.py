"""A running tree of a hundred jobs and a running pipeline of forty stages, and their progress."""

import time
from typing import Any

from activities.pipelines.plan import plan
from activities.pipelines.record_run import definition_and_payload
from activities.store import run_rows
from activities.store.artifacts import Artifacts
from activities.store.registry import pipeline_rows
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from workflows.model.rows import JobRecord
from workflows.model.states import JobState, TaskState
from workflows.pipeline.plan import RunState, StageState, Trigger
from workflows.pipeline.read import read
from workflows.pipeline.rows import RunRecords, first_rows
from workflows.pipeline.syntax import Format

JOBS = 100
RUNS, FAILED = 61, 83
"""The positions of the running job and of the failed one."""


def leg(number: int, **fields: object) -> JobRecord:
    outcome: dict[str, object] = {"delegation_id": f"leg-{number}", "summary": f"did part {number}"}
    return seeds.job(
        f"{ROOT}.{number}", **{"state": JobState.SUCCEEDED, "ended_at": float(number), **outcome, **fields}
    )


def sow(service: Service) -> None:
    """Seed the tree: all but a few jobs have succeeded."""
    others = [leg(number) for number in range(1, JOBS) if number not in (RUNS, FAILED)]
    runs = leg(RUNS, state=JobState.RUNNING, ended_at=None, summary="")
    failed = leg(FAILED, state=JobState.FAILED, reason="tests are red", summary="")
    root = seeds.job(state=JobState.SUCCEEDED, ended_at=0.5)
    task = seeds.task(title="build it all", opened_at=time.time())
    seeds.write(service, task, root, *others, runs, failed)


def finish(service: Service) -> None:
    """Let the last job succeed, and the tree be done."""
    done = seeds.task(title="build it all", state=TaskState.DONE, ended_at=time.time(), revision=2)
    seeds.write(service, done, leg(RUNS, revision=2, summary="did it"))


RUN = "prun-000000000001"
STAGES = 40
_TEXT = "name: nightly\nrepo: acme/shop\nstages:\n" + "".join(
    f"  - {{id: s-{number}, kind: shell, command: 'true'{', needs: [s-1]' if number > 1 else ''}}}\n"
    for number in range(1, STAGES + 1)
)


def begin_run(service: Service) -> RunRecords:
    """Begin the run: its first stage is the tree."""
    seeds.repo(service)
    pipeline_rows.put(service.store, read(_TEXT, Format.YAML), _TEXT, Format.YAML)
    artifacts = Artifacts(service.home.artifacts)
    asked: dict[str, Any] = {"name": "nightly", "run_id": RUN, "trigger": Trigger.CLI, "payload": {}}
    start = plan(service.store, service.settings, artifacts, **asked)
    rows = first_rows(start)
    run_rows.write(service.store, rows, definition_and_payload(artifacts, start))
    first = {"state": StageState.RUNNING, "job_id": ROOT, "started_at": time.time(), "revision": 1}
    stages = (rows.stages[0].model_copy(update=first), *rows.stages[1:])
    return change_run(service, rows.model_copy(update={"stages": stages}), state=RunState.RUNNING, revision=1)


def change_run(service: Service, rows: RunRecords, **fields: object) -> RunRecords:
    """Write the run with these fields."""
    changed = rows.model_copy(update={"run": rows.run.model_copy(update=fields), "begins": None})
    run_rows.write(service.store, changed)
    return changed


def ask(service: Service) -> None:
    """Let the tree wait for a person."""
    waits = seeds.task(title="build it all", state=TaskState.AWAITING_HUMAN, opened_at=time.time(), revision=2)
    seeds.write(service, waits, seeds.round_(expires_at=time.time() + 3600))
