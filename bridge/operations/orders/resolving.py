"""Starting an agent that resolves the conflicts in a tree's work (ruling O6)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.git import command as program
from activities.git.merges.task_line import LeftOut, Part, draw, name_of
from activities.host import checkouts
from activities.store import jobs as stored_jobs
from activities.store.registry.agents import Agent
from activities.store.registry.repos import Repo
from bridge.operations.branches import branches, hub_work, task_line
from bridge.operations.branches.branches import Branches, BranchState
from bridge.operations.branches.task_line import refuse_foreign
from bridge.operations.jobs import jobs
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import follow_ups, trees
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.model.errors import Commands, RefusedError, UsageError
from workflows.model.states import JobState
from workflows.text.fences import inline

MINE = "mine"
"""The name of the operator's own branch, beside those of legs."""


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
        start = follow_ups.going_on(service, tree, chosen.worker, message, parts, root)
        names = tuple(dict.fromkeys(part.leg for part in conflicts))
        start = start.model_copy(
            update={"title": follow_ups.titled("Resolve the conflicts of", whole), "merges": names}
        )
        if with_mine:
            hub_work.share(service, repo, start.root_job_id, parts[-1].commit)
        root = await trees.start(service, start, repo.host)
    return Resolving(root, tree.root_job_id, chosen.worker.name, tree.task_branch, tuple(conflicts))


def _refuse_early(whole: Tree, tree: Branches) -> None:
    if not whole.over:
        raise RefusedError(f"{tree.root_job_id} is still at work", f"service job tree {tree.root_job_id} --watch")
    follow_ups.refuse_without_base(tree)


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
    """Return the wanted agent, else an able one: of a leg that conflicts, of the tree, of the repository."""
    left_out = {part.branch for part in conflicts}
    first = [job.agent for job in whole.jobs if job.branch in left_out] + [job.agent for job in whole.jobs]
    agent = follow_ups.chosen(service, Action.IMPLEMENT, repo.name, wanted, first)
    if agent is None:
        raise UsageError(
            f"no agent can resolve conflicts on {repo.name}: it takes the capability implement",
            f"service agent add merger --runtime RUNTIME --capabilities implement --autonomy workspace-write"
            f" --repo {repo.name}",
        )
    return agent


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
