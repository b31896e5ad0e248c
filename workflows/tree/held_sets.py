"""Sets of delegations that a tree keeps while it starts nothing, and how many of them it has room for (ruling B6).

A pause, a block and an end find coordinators running, and each of them may come back with a set as large as the
contract allows. The state they are kept in travels as one payload.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from workflows.contract.strings import size
from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome
from workflows.model.texts import RefusedSet
from workflows.model.wire import Wire
from workflows.tree.chains import Coordinator
from workflows.tree.state import TreeState
from workflows.tree.step import Step

KEPT_BYTES = 128 * 1024
"""What all sets that wait may take together: the largest of the usual width, or some 150 legs as they mostly are.

Where they go on as new they travel twice, in the state and in what is next.
"""

_A_SET = frozenset({"delegations", "long_prompts", "agents", "templates"})


def kept(step: Step, chain: Coordinator, outcome: JobOutcome) -> JobOutcome:
    """The result as its coordinator waits with it: without its set where that does not fit, which is told."""
    if not outcome.delegations or _fits(step.state, outcome):
        return outcome
    chain.left_out = len(outcome.delegations)
    _tell(step, outcome)
    return outcome.model_copy(update={"delegations": (), "long_prompts": {}, "agents": (), "templates": ()})


def refused(step: Step, outcome: JobOutcome) -> RefusedSet:
    """A set that the finalize is told of, complete where it fits."""
    if _fits(step.state, outcome):
        return as_shown(outcome)
    _tell(step, outcome)
    return RefusedSet(job_id=outcome.job_id, delegations=(), left_out=len(outcome.delegations))


def as_shown(outcome: JobOutcome) -> RefusedSet:
    """A result's delegations as a prompt shows them."""
    long = {leg: prompt.digest for leg, prompt in outcome.long_prompts.items()}
    return RefusedSet(job_id=outcome.job_id, delegations=outcome.delegations, long_prompts=long)


def _tell(step: Step, outcome: JobOutcome) -> None:
    ids = [each.id for each in outcome.delegations]
    message = f"{len(ids)} delegation(s) not kept: with the others that wait they are more than a tree can hold"
    step.event(EventKind.DELEGATION_DROPPED, outcome.job_id, message, {"delegations": ids})


def _fits(state: TreeState, outcome: JobOutcome) -> bool:
    return sum(map(_bytes, _waiting(state))) + _bytes(outcome) <= KEPT_BYTES


def _waiting(state: TreeState) -> Iterator[Wire]:
    """Held back with its coordinator, refused and to be told, and told in a continuation that has not begun."""
    yield from (chain.held for chain in state.coordinators.values() if chain.held is not None)
    yield from state.finalize.refused if state.finalize is not None else ()
    runs = [*state.held_back.values(), *(offer.run for offer in state.offers.values() if offer.run is not None)]
    yield from (each for run in runs if run.brief is not None for each in run.brief.refused)


def _bytes(what: Wire) -> int:
    dumped: JsonValue = what.model_dump(mode="json", include=set(_A_SET))
    return size(dumped)
