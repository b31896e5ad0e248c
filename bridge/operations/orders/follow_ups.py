"""What resolving, reviewing and revising share: a job that goes on from an ended tree's work (rulings O6, L10)."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from activities.git.merges.task_line import Part
from activities.store import trees as stored_trees
from activities.store.registry import agents as stored_agents
from activities.store.registry.agents import Agent
from bridge.operations.branches import branches
from bridge.operations.branches.branches import Branches
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import new_jobs
from bridge.operations.registry import agents
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.model.errors import RefusedError, ServiceError
from workflows.model.jobs import Work
from workflows.model.workers import Worker
from workflows.tree.state import TreeInput

BELONGING = ("pull_request", "issue", "github", "web", "about", "into", "head")
"""The fields that say what a tree belongs to: a job that goes on from its work belongs to that too."""


def possible(service: Service, action: Action, repo: str) -> bool:
    """Return whether any agent may do this in a repository."""
    return next(able(service, action, repo), None) is not None


def chosen(service: Service, action: Action, repo: str, wanted: str, first: Sequence[str]) -> Agent | None:
    """Return the wanted agent, which must be able; else the first able one, those named first before all others."""
    if wanted:
        agent = agents.get(service, wanted)
        agent.check(action, repo)
        return agent
    return next(able(service, action, repo, first), None)


def able(service: Service, action: Action, repo: str, first: Sequence[str] = ()) -> Iterator[Agent]:
    """Yield the agents that may do this in a repository: those named first, then all others."""
    known = {agent.worker.name: agent for agent in stored_agents.every(service.store)}
    for name in dict.fromkeys([*first, *known]):
        with suppress(ServiceError):
            if name in known:
                known[name].check(action, repo)
                yield known[name]


def refuse_without_base(tree: Branches) -> None:
    """Raise if a tree has no base yet, from which its work is told."""
    if not tree.base:
        raise RefusedError(
            f"{tree.root_job_id} has no base yet: no job of it has begun", f"service job branches {tree.root_job_id}"
        )


def going_on(
    service: Service, tree: Branches, worker: Worker, message: str, parts: Sequence[Part], root: str | None
) -> TreeInput:
    """Return the input of a tree whose job begins from work of another tree, and has the branch of its task."""
    repo = branches.checkout(service, tree.repo, f"service job tree {tree.root_job_id}")
    start = new_jobs.tree_of(service, worker, Action.IMPLEMENT, message, repo, root=root)
    line = tuple(Work(leg=part.leg, job_id=part.job_id, branch=part.branch, head=part.commit) for part in parts)
    start = start.model_copy(update={"line": line})
    return belonging(service, tree.root_job_id, start, base=tree.base, task_branch=tree.task_branch)


def belonging(service: Service, root: str, start: TreeInput, **assigned: str | None) -> TreeInput:
    """Return the input of a tree that belongs to what the tree `root` belongs to, with changes of its assignment."""
    known = stored_trees.get(service.store, root)
    bound = known.start.assignment if known else start.assignment
    means = {name: getattr(bound, name) for name in BELONGING} | assigned
    return start.model_copy(update={"assignment": start.assignment.model_copy(update=means)})


def titled(doing: str, whole: Tree) -> str:
    """Return the title of a job that goes on from a tree's work."""
    return f"{doing} {whole.task.title}"[: new_jobs.TITLE_LENGTH]
