"""A tree's state."""

from workflows.contract.models import Action
from workflows.policy.settings import TreeSettings
from workflows.tree.jobs import Text, Wire, Worker


class TreeInput(Wire):
    """What a tree starts with."""

    root_job_id: str
    task_id: str
    title: str
    repo: str
    worker: Worker
    action: Action
    prompt: Text
    settings: TreeSettings
    created_at: float
    model: str | None = None
    effort: str | None = None
    pull_request: int | None = None


class TreeState(Wire):
    """Interim."""

    input: TreeInput


def new_tree(start: TreeInput) -> TreeState:
    return TreeState(input=start)
