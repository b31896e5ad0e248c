"""Redaction of input for Temporal and of results of activities."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import OutboundInterceptor, SignalWorkflowInput, StartWorkflowInput, StartWorkflowUpdateInput
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor

from activities.redaction.kept_secrets import KeptSecrets
from activities.redaction.on_temporal import Hiding, Redacting
from workflows.model.jobs import JobOutcome
from workflows.model.orders import ResumeOrder
from workflows.model.states import JobState

TOKEN = "ghp" + "_" + "a1B2" * 9


class _Server:
    sent: list[Any]

    def __init__(self) -> None:
        self.sent = []

    async def _take(self, sent: Any) -> None:
        self.sent.append(sent)

    start_workflow = signal_workflow = start_workflow_update = query_workflow = _take


@pytest.mark.ruling("N7")
@pytest.mark.parametrize("kind", ["start_workflow", "signal_workflow", "start_workflow_update", "query_workflow"])
async def test_what_people_send_keeps_its_secrets_at_home(kind: str, tmp_path: Path) -> None:
    server, kept = _Server(), KeptSecrets(tmp_path)
    client = Hiding(kept).intercept_client(cast("OutboundInterceptor", server))
    order = ResumeOrder(job_id="job-0123456789ab", verb="answer", text=f"it is {TOKEN}", actor="me", channel="cli")
    sent = SimpleNamespace(args=(order,), static_summary=f"with {TOKEN}", static_details=f"with {TOKEN}", memo=None)
    made = cast("StartWorkflowInput | SignalWorkflowInput | StartWorkflowUpdateInput", sent)
    await getattr(client, kind)(made)
    (arrived,) = server.sent[0].args
    assert TOKEN not in arrived.text
    assert kept.show(arrived.text) == order.text
    assert (arrived.job_id, arrived.verb) == (order.job_id, order.verb)
    if kind == "start_workflow":
        assert TOKEN not in server.sent[0].static_summary + server.sent[0].static_details


class _Activity:
    def __init__(self, ends: Any) -> None:
        self.ends = ends

    async def execute_activity(self, input: Any) -> Any:  # noqa: A002
        if isinstance(self.ends, BaseException):
            raise self.ends
        return self.ends


async def _execute(ends: Any) -> Any:
    activity = Redacting().intercept_activity(cast("ActivityInboundInterceptor", _Activity(ends)))
    return await activity.execute_activity(cast("Any", None))


@pytest.mark.ruling("N7")
async def test_what_activities_hand_back_holds_no_secret() -> None:
    outcome = JobOutcome(
        job_id="job-0123456789ab",
        state=JobState.FAILED,
        reason=f"no {TOKEN}",
        touched_files=(f"a/{TOKEN}",),
        summary="x",
    )
    back = await _execute(outcome)
    assert TOKEN not in back.model_dump_json()
    assert (back.job_id, back.state, back.summary) == (outcome.job_id, outcome.state, outcome.summary)


@pytest.mark.ruling("N7")
async def test_faults_of_activities_hold_no_secret_and_stay_what_they_are() -> None:
    with pytest.raises(ApplicationError, match=r"no \[redacted\]$") as raised:
        await _execute(ApplicationError(f"no {TOKEN}", {"why": TOKEN}, type="waits", non_retryable=True))
    assert (raised.value.type, raised.value.non_retryable, raised.value.details) == (
        "waits",
        True,
        ({"why": "[redacted]"},),
    )
    with pytest.raises(ApplicationError, match=r"no \[redacted\]$") as raised:
        await _execute(ValueError(f"no {TOKEN}"))
    assert raised.value.type == "ValueError"
    with pytest.raises(ValueError, match="harmless"):
        await _execute(ValueError("harmless"))
