"""The comments of a tree as they would be written, without GitHub and without an account."""

from dataclasses import dataclass

from bridge.operations.github.tree import bound_tree
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.github.facts import due
from workflows.github.texts.bodies import body
from workflows.model.errors import NotFoundError


@dataclass(frozen=True)
class Preview:
    """One comment."""

    fact_id: str
    kind: str
    only_edit: bool
    """It would only be changed where it has been written before."""
    body: str


def comments(service: Service, job_id: str, fact_id: str = "") -> list[Preview]:
    """Those of the tree a job belongs to; or one of them."""
    root = jobs.get(service, job_id).root_job_id
    tree = bound_tree(service, root)
    found = [Preview(each.fact_id, each.kind, each.only_edit, body(tree, each)) for each in due(tree)] if tree else []
    wanted = [each for each in found if fact_id in {"", each.fact_id}]
    if not wanted:
        known = ", ".join(each.fact_id for each in found) or "none"
        raise NotFoundError(f"{root} has no fact {fact_id}; it has {known}", f"service github comment-preview {root}")
    return wanted
