"""Comment bodies, rendered from the rows when they are written."""

from dataclasses import dataclass, replace

from activities.store.github import comments
from activities.store.github.facts import FactRow
from bridge.github.session import Session
from bridge.github.wrote import Never
from bridge.operations.github.tree import bound_tree
from workflows.github.bound_tree import BoundTree
from workflows.github.commands import Refused
from workflows.github.facts import FactKind, due, fact_of
from workflows.github.texts.bodies import body
from workflows.github.texts.refusal import refusal
from workflows.github.texts.status import report


@dataclass(frozen=True)
class Body:
    """The whole comment, with its marker."""

    text: str
    only_edit: bool = False
    """True once the fact is outdated: an existing comment is edited, a missing one is not created."""


def body_of(session: Session, fact: FactRow) -> Body:
    """Render the current body of a fact's comment."""
    if not fact.root_job_id:
        return Body(_answer(session, fact))
    tree = _tree(session, fact.root_job_id)
    meant = next((each for each in due(tree) if each.fact_id == fact_of(fact.fact_id)), None)
    if meant is None:
        raise Never("what it tells is no longer so")
    return Body(body(tree, replace(meant, fact_id=fact.fact_id)), meant.only_edit)


def _answer(session: Session, fact: FactRow) -> str:
    """Render the reply to a comment."""
    row = comments.get(session.store, int(fact.subject))
    who = row.author if row else ""
    if fact.kind == FactKind.REPORT:
        return report(fact.fact_id, [_tree(session, root) for root in fact.text.split()])
    refused = Refused.model_validate_json(fact.text)
    return refusal(fact.fact_id, who, refused.why, refused.instead, refused.lines)


def _tree(session: Session, root: str) -> BoundTree:
    tree = bound_tree(session.service, root)
    if tree is None:
        raise Never(f"the tree {root} is gone")
    return tree
