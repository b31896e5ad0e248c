"""Replays of earlier releases' histories: this release continues each of them."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from tests.temporal import golden
from tests.temporal.server import replayer
from workflows.temporal.runner import runner

FILES = sorted(golden.FOLDER.glob("*/*.json"))


def sandbox() -> WorkflowRunner:
    """Return a sandbox that refuses a foreign module imported with ours by mistake."""
    policy = workflow.SandboxImportNotificationPolicy
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules("workflows").with_import_notification_policy(
            policy.WARN_ON_DYNAMIC_IMPORT | policy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH
        )
    )


@pytest.mark.ruling("engine:restores")
@pytest.mark.parametrize("by", [runner, sandbox])
async def test_every_golden_history_replays(by: Callable[[], WorkflowRunner]) -> None:
    for path in FILES:
        history = WorkflowHistory.from_json(path.stem, path.read_text())
        result = await replayer(by=by()).replay_workflow(history, raise_on_replay_failure=False)
        assert result.replay_failure is None, f"{path.name}: {result.replay_failure}"


@pytest.mark.ruling("Q8")
def test_there_is_a_history_of_every_shape_of_this_release() -> None:
    release = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
    recorded = {path.stem.rpartition("-")[0] for path in FILES if path.parent.name == release}
    assert recorded == set(golden.SHAPES), "python -m tests.temporal.golden"


async def test_a_replay_notices_another_course() -> None:
    """The check can fail: another workflow id of a leg is another course."""
    path = golden.FOLDER / "0.2.0" / "fan_out-0.json"
    changed = json.loads(path.read_text())
    for event in changed["events"]:
        begun = event.get("startChildWorkflowExecutionInitiatedEventAttributes", {})
        begun["workflowId"] = "somebody-else"
    history = WorkflowHistory.from_json(path.stem, json.dumps(changed))
    result = await replayer().replay_workflow(history, raise_on_replay_failure=False)
    assert result.replay_failure is not None
