"""The bodies of the facts that a tree's rows make due."""

from workflows.github.bound_tree import BoundTree
from workflows.github.facts import Fact, FactKind
from workflows.github.texts.end import end
from workflows.github.texts.pause import pause, reminder
from workflows.github.texts.refusal import refusal
from workflows.github.texts.status import status
from workflows.model.rows import EventRecord


def body(tree: BoundTree, fact: Fact) -> str:
    """Render a fact's body from the rows alone: equal rows give equal texts, so a digest shows if an edit is needed."""
    match fact.kind:
        case FactKind.STATUS:
            return status(tree)
        case FactKind.PAUSE:
            return pause(tree, next(each for each in tree.rounds if each.round_id == fact.about), fact.fact_id)
        case FactKind.REMINDER:
            return reminder(tree, _event(tree, fact), fact.fact_id)
        case FactKind.END:
            return end(tree, fact.fact_id)
        case FactKind.REFUSAL:
            return _refused(tree, _event(tree, fact))
        case _:
            raise ValueError(f"{fact.kind} is no comment that a tree's rows make due")


def _event(tree: BoundTree, fact: Fact) -> EventRecord:
    return next(each for each in tree.events if each.event_id == fact.about)


def _refused(tree: BoundTree, event: EventRecord) -> str:
    open_ones = [each.commands[0] for each in tree.rounds if each.end is None and each.commands]
    return refusal(event.event_id, str(event.data.get("actor") or ""), [event.message], open_ones)
