"""The outcome of an ended command of a shell stage."""

from pathlib import Path

import pytest

from activities.pipelines.run_stage import judge
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from workflows.pipeline.plan import StageState


@pytest.mark.ruling("N2")
def test_a_stage_that_met_a_limit_of_its_control_group_says_so(tmp_path: Path) -> None:
    ran_out = "it used all of its memory: 200 MiB, see [worker].job_memory"
    (tmp_path / "stderr.log").write_text("building\n")
    outcome = judge(RunEnd(EndKind.EXITED, tmp_path, signal=9, ran_out=ran_out), None)
    assert (outcome.state, outcome.reason) == (
        StageState.FAILED,
        f"the command ended with signal 9: building; {ran_out}",
    )
