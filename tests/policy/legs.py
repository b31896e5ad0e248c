"""Legs as the rules see them."""

from tests.tree.simulator import CODER
from workflows.contract.models import Action
from workflows.tree.jobs import JobState, Text
from workflows.tree.state import Leg


def leg(leg_id: str, *deps: str, state: str = "queued", action: str = "implement", **fields: object) -> Leg:
    base: dict[str, object] = {
        "id": leg_id,
        "job_id": f"job.{leg_id}",
        "worker": CODER,
        "action": Action(action),
        "prompt": Text(inline="do"),
        "deps": deps,
        "state": JobState(state),
    }
    return Leg.model_validate(base | fields)


def legs(*all_legs: Leg) -> dict[str, Leg]:
    return {each.id: each for each in all_legs}
