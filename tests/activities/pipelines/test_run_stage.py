"""The outcome of a shell stage: of an ended command, and of one that never started."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.host.context import Context
from activities.host.slots import Slots
from activities.pipelines.run_stage import Stages, judge
from activities.runs import run_folders
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from activities.settings.home import Home
from activities.store import claim_rows
from activities.store.attempt_rows import Offered
from activities.store.database import open_store
from activities.store.registry import repo_rows
from tests.activities.git.conftest import make_repository
from tests.unboxed import unboxed
from workflows.model.long_texts import Text
from workflows.model.orders import StopReason
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import StageState
from workflows.pipeline.rows import StageRecord
from workflows.pipeline.stages import StageRun


@pytest.mark.ruling("G2.stops", "N3")
async def test_a_command_that_was_ordered_to_stop_before_its_start_never_starts_and_leaves_no_folder(
    home: Home, tmp_path: Path
) -> None:
    """Also if the worker died, or the disk failed, before the folder was removed: the case `pipeline, stage ended, 1,
    work folders read-only` of the matrix of faults.
    """
    context, offered = Context(home, unboxed(), open_store(home)), Offered("prun-1.1", 1)
    run_dir = run_folders.new(home.runs, *offered.key)
    assert claim_rows.begin(context.store, offered, host=context.host, run_dir=str(run_dir))
    assert claim_rows.call_off(context.store, offered, StopReason.CANCELLED)
    stage: dict[str, Any] = {"run_id": "prun-1", "stage_id": "build", "attempt": 1}
    row = StageRecord(**stage, number=1, kind=StageKind.SHELL, needs=(), state=StageState.RUNNING)
    run = StageRun(
        **stage,
        job_id=offered.job_id,
        pipeline="nightly",
        repo="acme/shop",
        script=Text(inline="echo never"),
        payload=Text(inline="{}"),
        row=row,
    )
    stages = Stages(context, Slots(context.settings))
    outcome = await ActivityEnvironment().run(stages.run_stage, run)
    assert (outcome.state, outcome.reason) == (StageState.CANCELLED, "stopped on order")
    repo_rows.put(context.store, run.repo, str(make_repository(tmp_path / "shop")), context.host)
    (folder := home.worktrees / "acme--shop+prun-1.1-1").mkdir(parents=True)
    assert await ActivityEnvironment().run(stages.run_stage, run) == outcome
    assert not folder.exists()


@pytest.mark.ruling("N2")
def test_a_stage_that_met_a_limit_of_its_control_group_says_so(tmp_path: Path) -> None:
    ran_out = "it used all of its memory: 200 MiB, see [worker].job_memory"
    (tmp_path / "stderr.log").write_text("building\n")
    outcome = judge(RunEnd(EndKind.EXITED, tmp_path, signal=9, ran_out=ran_out), None)
    assert (outcome.state, outcome.reason) == (
        StageState.FAILED,
        f"the command ended with signal 9: building; {ran_out}",
    )
