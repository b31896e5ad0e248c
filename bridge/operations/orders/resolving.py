"""Starting an agent that resolves the conflicts in a tree's work (ruling O6)."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from activities.git import command as program
from activities.git.merges.task_line import LeftOut, Part, draw, name_of
from activities.host import checkouts
from activities.store import jobs as stored_jobs
from activities.store import trees as stored_trees
from activities.store.registry import agents as stored_agents
from activities.store.registry.agents import Agent
from activities.store.registry.repos import Repo
from bridge.operations.branches import branches, hub_work, task_line
from bridge.operations.branches.branches import Branches, BranchState
from bridge.operations.branches.foreign_commits import refuse_foreign
from bridge.operations.jobs import jobs
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import new_jobs, trees
from bridge.operations.registry import agents
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.model.errors import Commands, RefusedError, ServiceError, UsageError
from workflows.model.jobs import Work
from workflows.model.states import JobState
from workflows.model.workers import Worker
from workflows.text.fences import inline
from workflows.tree.state import TreeInput

MINE = "mine"
"""The name of the operator's own branch, beside those of legs."""

BELONGING = ("pull_request", "issue", "github", "web", "about", "into", "head")
"""The fields that a tree which goes on from the work of another copies from that: what it belongs to."""


@dataclass(frozen=True)
class Resolving:
    """A job that resolves the conflicts of a tree."""

    job_id: str
    root_job_id: str
    agent: str
    task_branch: str
    conflicts: tuple[LeftOut, ...]


async def resolve(
    service: Service, job_id: str, *, agent: str = "", with_mine: bool = False, root: str | None = None
) -> Resolving:
    """Start an implement job that begins from all of a tree's work that merges cleanly, and merges the rest.

    With `with_mine` the branch that the operator has checked out is a part of it. The job's work is merged into the
    branch of the tree's task. A job started under this id before is returned.
    """
    whole = jobs.tree(service, job_id)
    order = f"service job resolve {job_id}{' --with-mine' if with_mine else ''}"
    tree = branches.of_tree(service, whole.task.root_job_id, typed=order, fresh=True)
    repo = branches.checkout(service, tree.repo, order)
    _refuse_early(whole, tree)
    if with_mine:
        checkouts.fresh(service, repo)
    parts, conflicts = _conflicts(service, tree, Path(repo.path), with_mine=with_mine)
    chosen = _agent(service, whole, conflicts, repo, agent)
    if root is None or stored_jobs.get(service.store, root) is None:
        message = "\n".join(_message(whole, conflicts))
        start = going_on(service, tree, chosen.worker, message, parts, root)
        names = tuple(dict.fromkeys(part.leg for part in conflicts))
        start = start.model_copy(update={"title": titled("Resolve the conflicts of", whole), "merges": names})
        if with_mine:
            hub_work.share(service, repo, start.root_job_id, parts[-1].commit)
        root = await trees.start(service, start, repo.host)
    return Resolving(root, tree.root_job_id, chosen.worker.name, tree.task_branch, tuple(conflicts))


def _refuse_early(whole: Tree, tree: Branches) -> None:
    if not whole.over:
        raise RefusedError(f"{tree.root_job_id} is still at work", f"service job tree {tree.root_job_id} --watch")
    if not tree.base:
        raise RefusedError(
            f"{tree.root_job_id} was started by an earlier release, which did not record its base:"
            " its conflicts cannot be found",
            f"service job branches {tree.root_job_id}",
        )


def _conflicts(service: Service, tree: Branches, repo: Path, *, with_mine: bool) -> tuple[list[Part], list[LeftOut]]:
    """Return the tree's work in order of dispatch, and the parts that conflict."""
    for leg in tree.legs:
        if leg.job_state is JobState.SUCCEEDED and leg.state is BranchState.UNMERGED and leg.ahead is not None:
            refuse_foreign(service, tree, leg, "; nothing was started")
    parts = task_line.parts_of(service, tree)
    if with_mine:
        parts.append(Part(MINE, MINE, _checked_out(repo), program.line(repo, "rev-parse", "HEAD")))
    conflicts = [each for each in draw(repo, tree.base, tree.head or tree.base, parts).left_out if each.files]
    if not conflicts:
        into = " --into-mine" if with_mine else ""
        root = tree.root_job_id
        raise RefusedError(f"nothing of {root} conflicts", Commands(f"service job merge {root}{into}"))
    return parts, conflicts


def _checked_out(repo: Path) -> str:
    return program.line(repo, "rev-parse", "--abbrev-ref", "HEAD")


def _agent(service: Service, whole: Tree, conflicts: Sequence[LeftOut], repo: Repo, wanted: str) -> Agent:
    """Return the wanted agent, else the first able one: an agent whose leg conflicts, then others of this
    repository.
    """
    if wanted:
        agent = agents.get(service, wanted)
        agent.check(Action.IMPLEMENT, repo.name)
        return agent
    left_out = {each.branch for each in conflicts}
    for able in implementers(service, whole, [job.agent for job in whole.jobs if job.branch in left_out]):
        return able
    raise UsageError(
        f"no agent can resolve conflicts on {repo.name}: it takes the capability implement",
        f"service agent add merger --runtime RUNTIME --capabilities implement --autonomy workspace-write"
        f" --repo {repo.name}",
    )


def possible(service: Service, repo: str) -> bool:
    """Return whether any agent can resolve conflicts in a repository."""
    return any(_may_implement(agent, repo) for agent in stored_agents.every(service.store))


def implementers(service: Service, whole: Tree, first: Sequence[str]) -> Iterator[Agent]:
    """Yield the agents that may implement on a tree's repository: those named first, others of the tree, all others."""
    known = {each.worker.name: each for each in stored_agents.every(service.store)}
    names = dict.fromkeys([*first, *(job.agent for job in whole.jobs), *known])
    yield from (known[name] for name in names if name in known and _may_implement(known[name], whole.task.repo))


def _may_implement(agent: Agent, repo: str) -> bool:
    with suppress(ServiceError):
        agent.check(Action.IMPLEMENT, repo)
        return True
    return False


def going_on(
    service: Service, tree: Branches, worker: Worker, message: str, parts: Sequence[Part], root: str | None
) -> TreeInput:
    """Return the input of a tree whose job begins from work of another tree, and has the branch of its task."""
    repo = branches.checkout(service, tree.repo, f"service job tree {tree.root_job_id}")
    start = new_jobs.tree_of(service, worker, Action.IMPLEMENT, message, repo, root=root)
    known = stored_trees.get(service.store, tree.root_job_id)
    bound = known.start.assignment if known else start.assignment
    means = {"base": tree.base, "task_branch": tree.task_branch} | {name: getattr(bound, name) for name in BELONGING}
    line = tuple(Work(leg=each.leg, job_id=each.job_id, branch=each.branch, head=each.commit) for each in parts)
    return start.model_copy(update={"assignment": start.assignment.model_copy(update=means), "line": line})


def titled(doing: str, whole: Tree) -> str:
    return f"{doing} {whole.task.title}"[: new_jobs.TITLE_LENGTH]


def _message(whole: Tree, conflicts: Sequence[LeftOut]) -> Iterator[str]:
    """Yield the agent's message: which work to merge. Where that is, its prompt says (ruling P2)."""
    yield f"Bring together the work of the task {inline(whole.task.title)}."
    yield "You begin from all of it that goes together. The rest conflicts with that, and its merge is begun for you:"
    yield ""
    for each in conflicts:
        against = f" with {', '.join(map(inline, each.against))}" if each.against else ""
        files = ", ".join(map(inline, each.files))
        yield f"- {inline(name_of(each.leg))} conflicts{against} in {files}"
    yield ""
    yield "Resolve the conflicts so that what both sides are for is kept, and change nothing else. Run the tests."
