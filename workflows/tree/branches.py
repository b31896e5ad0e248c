"""Whose work a leg's dependents get: the branches of its whole chain, nested ones included (rulings I1, I2)."""

from collections.abc import Iterable, Iterator

from workflows.contract.models import Action
from workflows.model.rows import JobRecord
from workflows.model.states import JobState
from workflows.tree.chains import Batch, Coordinator, Leg
from workflows.tree.state import TreeState


def needed(state: TreeState, chain: Coordinator, batch: Batch, leg: Leg) -> tuple[str, ...]:
    """What the leg's own coordinator was given, and what the legs it depends on made, in merge order."""
    made = (branch for dep in batch.contributors(leg) for branch in made_by(state, dep))
    return tuple(dict.fromkeys([*chain.run.branch_deps, *made]))


def made_by(state: TreeState, leg: Leg) -> tuple[str, ...]:
    """A leg that delegated hands on what its chain made, every other one its own branch; if it succeeded."""
    if leg.state is not JobState.SUCCEEDED:
        return ()
    chain = state.coordinators.get(leg.job_id)
    return tuple(chain.work) if chain is not None else tuple(own(state.jobs[leg.job_id]))


def own(job: JobRecord) -> Iterator[str]:
    """The branch of an implement job that succeeded, if it has one."""
    if job.state is JobState.SUCCEEDED and job.action is Action.IMPLEMENT and job.branch:
        yield job.branch


def add(chain: Coordinator, branches: Iterable[str]) -> None:
    """More of what the chain made, in merge order."""
    chain.work = list(dict.fromkeys([*chain.work, *branches]))


def add_batch(state: TreeState, chain: Coordinator, batch: Batch) -> None:
    """What the succeeded legs of a batch made, once its coordinator goes on."""
    add(chain, (branch for leg in batch.merge_order() for branch in made_by(state, leg)))
