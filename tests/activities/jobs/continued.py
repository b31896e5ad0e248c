"""Jobs of a coordinator that go on in the session of the one before (ruling K3)."""

from typing import Any

from tests.assigned import changed
from tests.tree.simulator import World, delegation, tree_input
from workflows.contract.models import Notice
from workflows.model.event_payloads import check_payload
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.states import Continuation
from workflows.model.workers import SessionScope

ROOT = "job-0123456789ab"


def kept(run: JobRun, scope: SessionScope = SessionScope.TREE) -> JobRun:
    return changed(run, worker=run.assignment.worker.model_copy(update={"session": scope}))


def next_of(run: JobRun, number: int, **changes: Any) -> JobRun:
    """Return the chain's next job, with a brief."""
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"))
    world.leg("a")
    update = {"job_id": f"{ROOT}.{number}", "parent_job_id": run.job_id, "continuation": Continuation.NORMAL}
    return run.model_copy(update=update | {"brief": world.last.brief} | changes)


def told(outcome: JobOutcome, kind: str) -> list[Notice]:
    notices = [notice for notice in outcome.notices if notice.kind == kind]
    for notice in notices:
        check_payload(kind, notice.data)
    return notices
