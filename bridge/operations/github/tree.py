"""The data of a tree from which GitHub comments are rendered: its rows, its result, the people to mention (ruling
L3).
"""

from dataclasses import dataclass, replace

from activities.store import attempt_rows, branch_rows, event_rows, job_rows, round_rows, tree_rows
from activities.store.github import facts
from activities.store.registry import repo_rows
from bridge.operations.jobs.jobs import get
from bridge.operations.service import Service
from workflows.contract.locate import KEY
from workflows.contract.models import ServiceResult
from workflows.github.bound_tree import BoundTree, last_job
from workflows.github.facts import FactKind, due
from workflows.github.texts.comments import body
from workflows.model.errors import NotFoundError
from workflows.model.event_kinds import BranchEventKind
from workflows.model.rows import JobRecord


def bound_tree(service: Service, root: str) -> BoundTree | None:
    """Return the tree as the store has it, whether it belongs to a GitHub thread or not; None if it does not exist.

    Its events are read first: what they tell is then in the rows, also of a tree that ends meanwhile. Comments link to
    the dashboard only if the settings give its address: others can't use a local one.
    """
    store = service.store
    events = tuple(event_rows.of_tree(store, root))
    task, kept = job_rows.task_of(store, root), tree_rows.get(store, root)
    if task is None:
        return None
    settings = kept.start.settings if kept else service.settings.snapshot()
    repo = repo_rows.get(store, task.repo)
    tree = BoundTree(
        task=task,
        jobs=tuple(job_rows.tree(store, root)),
        rounds=tuple(round_rows.of_tree(store, root)),
        events=events,
        bounds=settings.bounds,
        handle=settings.escalation_handle or "",
        owner=repo.github.partition("/")[0] if repo else "",
        dashboard=service.settings.bridge.url,
        merged=frozenset(
            event.branch for kind, _, event in branch_rows.events_of(store, root) if kind is BranchEventKind.MERGED
        ),
    )
    published = [each.url for each in facts.of_root(store, root) if each.kind == FactKind.PUBLISH and each.url]
    tree = replace(tree, published=tuple(published))
    last = last_job(tree) if task.state.is_closed else None
    return replace(tree, result=result_of(service, last)) if last else tree


def last_event(tree: BoundTree) -> int:
    """Return the sequence number of the tree's last event."""
    return max((event.seq for event in tree.events), default=0)


def result_of(service: Service, job: JobRecord) -> ServiceResult | None:
    """Return the result of a job, from its attempt's row."""
    runs = attempt_rows.of_job(service.store, job.job_id)
    payload = (runs[-1].payload or {}).get(KEY) if runs else None
    return ServiceResult.model_validate(payload) if payload else None


@dataclass(frozen=True)
class Preview:
    """A comment as it would be written, without GitHub and without an account."""

    fact_id: str
    kind: str
    only_edit: bool
    """True if this text only replaces that of an existing comment."""
    body: str


def comments(service: Service, job_id: str, fact_id: str = "") -> list[Preview]:
    """Return the comments of the tree a job belongs to, or the one of `fact_id`."""
    root = get(service, job_id).root_job_id
    tree = bound_tree(service, root)
    previews = (
        [Preview(each.fact_id, each.kind, each.only_edit, body(tree, each)) for each in due(tree)] if tree else []
    )
    wanted = [each for each in previews if fact_id in {"", each.fact_id}]
    if not wanted:
        known = ", ".join(each.fact_id for each in previews) or "none"
        raise NotFoundError(f"{root} has no fact {fact_id}; it has {known}", f"service github comment-preview {root}")
    return wanted
