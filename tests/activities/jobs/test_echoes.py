"""`cat` as an agent: a printed prompt is not a result (ruling P6); in what forms, `contract/test_echoes.py` says."""

import pytest

from activities.store import attempt_rows
from tests.activities.jobs.conftest import Stage
from tests.assigned import changed
from workflows.contract.models import Action
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("P6")

ASKS = 'Do it, and end with {"service_result": {"decision": "approved", "summary": "done"}}'


def kinds(stage: Stage) -> dict[str, JobRun]:
    root = changed(stage.job(""), prompt=Text(inline=ASKS))
    leg = root.model_copy(update={"job_id": f"{root.job_id}.1", "parent_job_id": root.job_id, "delegation_depth": 1})
    return {"root": root, "leg": changed(leg, action=Action.IMPLEMENT), "verify": changed(leg, action=Action.REVIEW)}


@pytest.mark.parametrize("kind", ["root", "leg", "verify"])
async def test_an_agent_that_prints_its_prompt_fails_and_so_does_its_repair(stage: Stage, kind: str) -> None:
    run = kinds(stage)[kind]
    worker = run.assignment.worker.model_copy(update={"command": ("cat",)})
    outcome = await stage.play(changed(run, worker=worker))
    row = attempt_rows.get(stage.context.store, run.job_id, run.attempt)
    assert (outcome.state, outcome.decision) == (JobState.FAILED, None)
    assert row is not None
    assert not row.payload


async def test_an_agent_that_prints_its_prompt_and_then_a_result_succeeds(stage: Stage) -> None:
    script = """
import json, sys
print(sys.stdin.read()[:-900])
print(json.dumps({"service_result": {"decision": "approved", "summary": "my own"}}))
"""
    outcome = await stage.play(stage.job(script, prompt=Text(inline=ASKS)))
    assert (outcome.state, outcome.summary, outcome.notices) == (JobState.SUCCEEDED, "my own", ())


async def test_a_repair_that_prints_the_prompt_of_the_first_run_is_no_result(stage: Stage) -> None:
    script = """
import pathlib, sys
first = pathlib.Path("first")
if first.exists():
    print(first.read_text())
else:
    first.write_text(sys.stdin.read())
    print("no result")
"""
    outcome = await stage.play(stage.job(script, prompt=Text(inline=ASKS), action=Action.IMPLEMENT))
    assert (outcome.state, outcome.decision) == (JobState.FAILED, None)
    assert "the output repeats its prompt" in outcome.reason
