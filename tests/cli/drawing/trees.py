"""A tree of a hundred jobs that is under way, and what becomes of it."""

import time

from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from workflows.model.rows import JobRecord
from workflows.model.states import JobState, TaskState

JOBS = 100
RUNS, FAILED = 61, 83
"""The places of the one that runs, and of the one that failed."""


def leg(number: int, **fields: object) -> JobRecord:
    told: dict[str, object] = {"delegation_id": f"leg-{number}", "summary": f"did part {number}"}
    return seeds.job(f"{ROOT}.{number}", **{"state": JobState.SUCCEEDED, "ended_at": float(number), **told, **fields})


def sow(service: Service) -> None:
    """All but a few have succeeded."""
    others = [leg(number) for number in range(1, JOBS) if number not in (RUNS, FAILED)]
    runs = leg(RUNS, state=JobState.RUNNING, ended_at=None, summary="")
    failed = leg(FAILED, state=JobState.FAILED, reason="tests are red", summary="")
    root = seeds.job(state=JobState.SUCCEEDED, ended_at=0.5)
    task = seeds.task(title="build it all", opened_at=time.time())
    seeds.write(service, task, root, *others, runs, failed)


def finish(service: Service) -> None:
    """The last one has succeeded, and the tree is done."""
    done = seeds.task(title="build it all", state=TaskState.DONE, ended_at=time.time(), revision=2)
    seeds.write(service, done, leg(RUNS, revision=2, summary="did it"))
