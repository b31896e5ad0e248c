"""kill -9 around every activity of a pipeline run: nothing is lost, nothing happens twice."""

import asyncio
import contextlib
import random
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Engine
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from activities.settings.home import Home
from activities.store import job_rows, run_rows
from activities.store.database import open_store
from tests import keys
from tests.pipeline.plans import agent, an_input, shell
from tests.temporal.deaths import SEED, TASK_TIMEOUT, worker
from tests.temporal.mortal_worker import effects
from tests.waiting import soon
from workflows.model import ids
from workflows.model.orders import Cancel
from workflows.pipeline.commands import CloseRun
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import Planned, StageState
from workflows.pipeline.rows import StageRecord
from workflows.temporal.pipeline_run import PipelineRun

MOMENTS = 5

Handle = WorkflowHandle[PipelineRun, CloseRun]
DONE, FAILED, SKIPPED = StageState.SUCCEEDED, StageState.FAILED, StageState.SKIPPED

SHAPES: Mapping[str, tuple[Planned, ...]] = {
    "chain": (shell("a"), shell("b", "a"), shell("c", "b")),
    "wide": (*(shell(f"s{n}") for n in range(4)), shell("last", *(f"s{n}" for n in range(4)))),
    "mixed": (shell("flaky", retry=1), agent("make", "flaky"), shell("check", "make")),
    "halts": (shell("bad", retry=1), shell("after", "bad"), agent("beside")),
    # Longer than an order waits for a dead worker.
    "cancelled": tuple(shell(f"slow{n}", *([f"slow{n - 1}"] if n else [])) for n in range(30)),
}
ENDS = {
    "chain": {"a": (DONE, 1), "b": (DONE, 1), "c": (DONE, 1)},
    "wide": dict.fromkeys(("s0", "s1", "s2", "s3", "last"), (DONE, 1)),
    "mixed": {"flaky": (DONE, 2), "make": (DONE, 1), "check": (DONE, 1)},
    "halts": {"bad": (FAILED, 2), "after": (SKIPPED, 0), "beside": (DONE, 1)},
}


async def a_run(client: Client, queue: str, shape: str) -> Handle:
    name = f"{shape}-{uuid4().hex[:8]}"
    start = an_input(*SHAPES[shape]).model_copy(update={"run_id": f"prun-{name}", "pipeline": name, "host": queue})
    return await client.start_workflow(
        PipelineRun.run, start, id=ids.workflow_id(name), task_queue=queue, task_timeout=TASK_TIMEOUT
    )


def attempts(store: Engine, stage: StageRecord) -> list[tuple[str, int]]:
    """Return the attempts that must have acted for such a row: a shell stage's commands, or the one job of an
    agent's tree.
    """
    if stage.kind is StageKind.SHELL:
        return [(f"{stage.run_id}.{stage.number}", number) for number in range(1, stage.attempt + 1)]
    assert stage.job_id is not None
    assert [job.state for job in job_rows.tree(store, stage.job_id)] == ["succeeded"]
    return [(stage.job_id, 1)]


async def over(run: Handle) -> str:
    """Return a run's id, once it has ended in any state."""
    with contextlib.suppress(WorkflowFailureError):
        await run.result()
    return run.id.replace("pipeline", "prun", 1)


@pytest.mark.ruling("K1", "engine:restores")
@pytest.mark.long
async def test_whenever_the_worker_dies_every_stage_acts_once(client: Client, queue: str, tmp_path: Path) -> None:
    home, chance = keys.give(Home(tmp_path / "home").ensure()), random.Random(SEED)
    store = open_store(home)
    runs = {shape: await a_run(client, queue, shape) for shape in SHAPES}
    for death in range(MOMENTS):
        async with worker(client, queue, home, chance.randint(2, 14)) as process:
            assert await soon(process.wait()) == -9
        if death == MOMENTS // 2:
            handle = runs["cancelled"]
            await handle.signal(
                PipelineRun.cancel, Cancel(run_id=handle.id.replace("pipeline", "prun", 1), actor="ann")
            )
    async with worker(client, queue, home, 0):
        ends = await soon(asyncio.gather(*(over(run) for run in runs.values())))
    closed, states, halts = dict(zip(runs, ends, strict=True)), {}, {}
    expected: list[tuple[str, int]] = []
    for shape, run_id in closed.items():
        kept = run_rows.get(store, run_id)
        stages = run_rows.stages_of(store, run_id)
        assert kept is not None
        states[shape], halts[shape] = kept.record.state, kept.record.halt_stage
        assert kept.record.finished_at is not None
        assert [stage.stage_id for stage in stages] == [plan.id for plan in SHAPES[shape]]
        assert all(stage.state.has_ended for stage in stages)
        if shape != "cancelled":
            assert {stage.stage_id: (stage.state, stage.attempt) for stage in stages} == ENDS[shape]
            expected += [attempt for stage in stages for attempt in attempts(store, stage)]
    assert states == {
        **dict.fromkeys(("chain", "wide", "mixed"), "succeeded"),
        "halts": "failed",
        "cancelled": "cancelled",
    }
    assert halts["halts"] == "bad"
    begun = effects(home).execute("SELECT job, attempt FROM began").fetchall()
    assert len(begun) == len(set(begun)), "every attempt acted once"
    others = [each for each in begun if not each[0].startswith("prun-cancelled")]
    assert sorted(others) == sorted(expected)
    acted = {job for job, _ in begun if job.startswith("prun-cancelled")}
    ran = [stage for stage in run_rows.stages_of(store, closed["cancelled"]) if stage.state is DONE]
    assert {f"{stage.run_id}.{stage.number}" for stage in ran} <= acted
    assert len(acted) <= len(ran) + 1, "at most the stage that was running when the order came"
