"""Which verbs of an open round would end the tree. Each is tried on a copy of the tree, and is not offered if it would
(ruling F4).
"""

from collections.abc import Callable

from workflows.policy.answers import TAKES, Answers, Verb
from workflows.tree import resume
from workflows.tree.state import TreeMemory
from workflows.tree.step import Step


def foresee(step: Step, move: Callable[[Step], None]) -> None:
    """Try the verbs of the open round on a copy of the tree: a verb that would end the tree is not offered (ruling F4).

    `move` advances a tree as the reducer does after each event. With several open rounds no verb is tried: the tree
    waits until the last round closes anyway.
    """
    state = step.state
    waiting = [(each, current) for each in state.rounds if (current := state.open_round(each))]
    for coordinator_id, current in waiting:
        ends = {
            verb: _end_after(state, coordinator_id, verb, move) for verb in TAKES[current.kind] if len(waiting) == 1
        }
        current.vain = {verb: why for verb, why in ends.items() if why}


def _end_after(state: TreeMemory, coordinator_id: str, verb: Verb, move: Callable[[Step], None]) -> str:
    """Return why this verb would finalize the tree; empty if it would not, or if ending the tree is the
    verb's purpose.
    """
    if verb in {Verb.ABORT, Verb.EXTEND}:
        return ""
    tried = Step(state.model_copy(deep=True), state.now)
    chain, current = tried.state.coordinators[coordinator_id], tried.state.open_round(coordinator_id)
    if current is not None:
        resume.carry_out(tried, chain, current, verb, "", Answers())
        move(tried)
    return tried.state.finalize.reason if tried.state.finalize else ""
