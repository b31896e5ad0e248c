"""The kill of a tree: what it stops, and what still runs (ruling G2)."""

from workflows.model.event_kinds import Data, EventKind
from workflows.model.states import JobState
from workflows.tree import finalize, job_offers
from workflows.tree.step import Step


def kill(step: Step, actor: str, *, immediate: bool) -> None:
    """Kill the tree. A second kill does nothing, except that a later `--now` cancels running jobs (ruling G2)."""
    state = step.state
    if state.closed and not state.is_blocked:
        return
    if state.killed_by is None:
        state.killed_by = actor
        reason = f"killed by {actor}"
        step.event(EventKind.DELEGATION_KILLED, state.root_id, f"the task was {reason}", _facts(step, actor, immediate))
        if not state.started:
            state.started = True
            finalize.never_began(step, state.root, JobState.CANCELLED, reason)
            return
        finalize.request(step, EventKind.DELEGATION_KILLED, reason)
        if state.closed_at is not None:
            state.exclude(state.closed_at)
            state.closed, state.closed_at = False, None
            finalize.dismiss(step, reason)
    if immediate:
        job_offers.stop_all(step)


def _facts(step: Step, actor: str, immediate: bool) -> Data:
    state = step.state
    waiting = [leg.job_id for leg in state.legs() if leg.is_unstarted and leg.timer is None]
    return {
        "actor": actor,
        "immediate": immediate,
        "cancelled": [job_id for job_id in waiting if job_id not in state.offers],
        "asked_back": job_offers.on_offer(step),
        "running": state.running,
    }
