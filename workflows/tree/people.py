"""The one place where a tree meets people (rulings F1 to F9).

Interim: rounds are not opened yet. A question is recorded as deferred, and `escalate_human` escalates to the
coordinator. `Round` and `Coordinator.rounds` are the places these two functions will fill.
"""

from workflows.contract.models import HumanQuestion
from workflows.tree.state import Batch, Coordinator, Leg
from workflows.tree.step import Step


def asked(step: Step, chain: Coordinator, job_id: str, questions: tuple[HumanQuestion, ...]) -> None:
    """A coordinator or one of its legs asks a person."""
    del chain
    if questions:
        ids = [question.id for question in questions]
        message = f"{len(ids)} question(s) asked: {', '.join(ids)}"
        step.event("human_questions_deferred", job_id, message, {"questions": ids})


def failed(step: Step, batch: Batch, leg: Leg) -> None:
    """A leg with policy escalate_human failed."""
    batch.escalated = True
    message = f"leg {leg.id} failed and asks for a person; its coordinator decides"
    step.event("escalate_human_deferred", leg.job_id, message, {"leg": leg.id})
