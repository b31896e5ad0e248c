"""Legs as the rules see them."""

from tests.tree.simulator import CODER
from workflows.contract.models import Action
from workflows.model.long_texts import Text
from workflows.model.states import JobState
from workflows.model.workers import Assignment
from workflows.tree.chains import Batch, Leg


def leg(leg_id: str, *deps: str, state: str = "queued", action: str = "implement", **fields: object) -> Leg:
    base: dict[str, object] = {
        "id": leg_id,
        "job_id": f"job.{leg_id}",
        "assignment": Assignment(worker=CODER, action=Action(action), prompt=Text(inline="do")),
        "deps": deps,
        "state": JobState(state),
    }
    return Leg.model_validate(base | fields)


def batch(*legs: Leg) -> Batch:
    return Batch(parent_job_id="job", legs={each.id: each for each in legs})
