"""Jobs that continue an ended tree's work: resolving conflicts (ruling O6), reviewing unreviewed changes (ruling L10);
plus helpers shared with `revising`.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

from activities.git import command
from activities.git.merges.task_line import LeftOutBranch, LinePart, draw
from activities.git.reviewed_commits import Unseen, unseen
from activities.host import checkouts
from activities.store import branch_rows, job_rows, tree_rows
from activities.store.registry import agent_rows
from activities.store.registry.agent_rows import Agent
from activities.store.registry.repo_rows import Repo
from bridge.operations.branches import branches, hub_work, merge_gate, merge_offer
from bridge.operations.branches.branches import Branches, BranchState
from bridge.operations.branches.merge_offer import refuse_foreign
from bridge.operations.jobs import jobs
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import new_jobs, trees
from bridge.operations.registry import agents
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.github.merge_gate import GateVerdict
from workflows.model.errors import Commands, RefusedError, UsageError
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.jobs import Work
from workflows.model.states import JobState
from workflows.model.workers import Worker
from workflows.policy.reference_names import leg_reference
from workflows.text.quoted_data import inline
from workflows.tree.state import TreeInput

LISTED = 40
"""Commits that the message of a review lists."""


class ReviewAnswer(BaseModel, frozen=True):
    """The review job that was started; its verdict counts for the gate."""

    job_id: str
    root_job_id: str
    agent: str
    head: str = Field(description="The commit that it reviews.")
    commits: tuple[str, ...] = Field(description="The unseen commits, each with its subject.")
    files: tuple[str, ...] = Field(description="The files they change.")


MINE = "mine"
"""The name that stands for the operator's branch among the names of legs."""


@dataclass(frozen=True)
class Resolving:
    """A job that resolves the conflicts of a tree."""

    job_id: str
    root_job_id: str
    agent: str
    task_branch: str
    conflicts: tuple[LeftOutBranch, ...]


BELONGING = ("pull_request", "issue", "github", "web", "about", "into", "head")
"""The fields that say what a tree belongs to. A tree that continues its work gets the same values."""


def possible(service: Service, action: Action, repo: str) -> bool:
    """Return whether any agent may do this in a repository."""
    return next(able(service, action, repo), None) is not None


def choose(service: Service, action: Action, repo: str, wanted: str, first: Sequence[str]) -> Agent | None:
    """Return the wanted agent, which must be able to do this. Without one, return the first able agent, preferring
    those in `first`.
    """
    if wanted:
        agent = agents.get(service, wanted)
        agent.check(action, repo)
        return agent
    return next(able(service, action, repo, first), None)


def able(service: Service, action: Action, repo: str, first: Sequence[str] = ()) -> Generator[Agent]:
    """Yield the agents that may do this in a repository: those in `first`, then all others."""
    known = {agent.worker.name: agent for agent in agent_rows.every(service.store)}
    for name in dict.fromkeys([*first, *known]):
        if name in known and known[name].can(action, repo):
            yield known[name]


def refuse_without_base(tree: Branches) -> None:
    """Raise if a tree has no base yet, because then its work can't be determined."""
    if not tree.base:
        raise RefusedError(
            f"{tree.root_job_id} has no base yet: no job of it has begun", f"service job branches {tree.root_job_id}"
        )


def going_on(
    service: Service, tree: Branches, worker: Worker, message: str, parts: Sequence[LinePart], root: str | None
) -> TreeInput:
    """Return the input of a new tree that starts from another tree's work, and shares that tree's task branch."""
    repo = branches.checkout(service, tree.repo, f"service job tree {tree.root_job_id}")
    start = new_jobs.tree_of(service, worker, Action.IMPLEMENT, message, repo, root=root)
    line = tuple(Work(leg=part.leg, job_id=part.job_id, branch=part.branch, head=part.commit) for part in parts)
    start = start.model_copy(update={"line": line})
    return belonging(service, tree.root_job_id, start, base=tree.base, task_branch=tree.task_branch)


def belonging(service: Service, root: str, start: TreeInput, **assigned: str | None) -> TreeInput:
    """Return the input of a new tree that belongs to the same pull request or issue as the tree `root`, with these
    fields changed.
    """
    known = tree_rows.get(service.store, root)
    bound = known.start.assignment if known else start.assignment
    means = {name: getattr(bound, name) for name in BELONGING} | assigned
    return start.model_copy(update={"assignment": start.assignment.model_copy(update=means)})


def follow_up_title(doing: str, whole: Tree) -> str:
    """Return the title of a job that continues a tree's work."""
    return f"{doing} {whole.task.title}"[: new_jobs.TITLE_LENGTH]


async def resolve(
    service: Service, job_id: str, *, agent: str = "", with_mine: bool = False, root: str | None = None
) -> Resolving:
    """Start an implement job that begins from all of a tree's work that merges cleanly, and merges the rest.

    With `with_mine`, the operator's checked-out branch is merged too. The job's work is merged into the branch of the
    tree's task. A job started under this id before is returned.
    """
    whole = jobs.tree(service, job_id)
    order = f"service job resolve {job_id}{' --with-mine' if with_mine else ''}"
    tree = branches.of_tree(service, whole.task.root_job_id, typed=order, fresh=True)
    repo = branches.checkout(service, tree.repo, order)
    _refuse_early(whole, tree)
    if with_mine:
        checkouts.fresh(service, repo)
    parts, conflicts = _conflicts(service, tree, Path(repo.path), with_mine=with_mine)
    chosen = _resolver(service, whole, conflicts, repo, agent)
    if root is None or job_rows.get(service.store, root) is None:
        message = "\n".join(_to_resolve(whole, conflicts))
        start = going_on(service, tree, chosen.worker, message, parts, root)
        names = tuple(dict.fromkeys(part.leg for part in conflicts))
        start = start.model_copy(update={"title": follow_up_title("Resolve the conflicts of", whole), "merges": names})
        if with_mine:
            hub_work.share(service, repo, start.root_job_id, parts[-1].commit)
        root = await trees.start(service, start, repo.host)
    return Resolving(root, tree.root_job_id, chosen.worker.name, tree.task_branch, tuple(conflicts))


def _refuse_early(whole: Tree, tree: Branches) -> None:
    if not whole.over:
        raise RefusedError(f"{tree.root_job_id} is still at work", f"service job tree {tree.root_job_id} --watch")
    refuse_without_base(tree)


def _conflicts(
    service: Service, tree: Branches, repo: Path, *, with_mine: bool
) -> tuple[list[LinePart], list[LeftOutBranch]]:
    """Return the tree's work in order of dispatch, and the parts that conflict."""
    for leg in tree.legs:
        if leg.job_state is JobState.SUCCEEDED and leg.state is BranchState.UNMERGED and leg.ahead is not None:
            refuse_foreign(service, tree, leg, "; nothing was started")
    parts = merge_offer.parts_of(service, tree)
    if with_mine:
        branch = command.line(repo, "rev-parse", "--abbrev-ref", "HEAD")
        parts.append(LinePart(MINE, MINE, branch, command.line(repo, "rev-parse", "HEAD")))
    conflicts = [each for each in draw(repo, tree.base, tree.head or tree.base, parts).left_out if each.files]
    if not conflicts:
        into = " --into-mine" if with_mine else ""
        root = tree.root_job_id
        raise RefusedError(f"nothing of {root} conflicts", Commands(f"service job merge {root}{into}"))
    return parts, conflicts


def _resolver(service: Service, whole: Tree, conflicts: Sequence[LeftOutBranch], repo: Repo, wanted: str) -> Agent:
    """Return the wanted agent, else an able one: of a leg that conflicts, of the tree, of the repository."""
    left_out = {part.branch for part in conflicts}
    first = [job.agent for job in whole.jobs if job.branch in left_out] + [job.agent for job in whole.jobs]
    agent = choose(service, Action.IMPLEMENT, repo.name, wanted, first)
    if agent is None:
        raise UsageError(
            f"no agent can resolve conflicts on {repo.name}: it takes the capability implement",
            f"service agent add merger --runtime RUNTIME --capabilities implement --autonomy workspace-write"
            f" --repo {repo.name}",
        )
    return agent


def _to_resolve(whole: Tree, conflicts: Sequence[LeftOutBranch]) -> Iterator[str]:
    """Yield the agent's message, which names the work to merge. Its prompt says where that work is (ruling P2)."""
    yield f"Bring together the work of the task {inline(whole.task.title)}."
    yield "You begin from all of it that goes together. The rest conflicts with that, and its merge is begun for you:"
    yield ""
    for part in conflicts:
        against = f" with {', '.join(map(inline, part.against))}" if part.against else ""
        files = ", ".join(map(inline, part.files))
        yield f"- {inline(leg_reference(part.leg))} conflicts{against} in {files}"
    yield ""
    yield "Resolve the conflicts so that what both sides are for is kept, and change nothing else. Run the tests."


async def review(
    service: Service, job_id: str, *, actor: str, agent: str = "", root: str | None = None
) -> ReviewAnswer:
    """Start a review of the commit that the gate judges. Its message names the commits that the tree's own reviews have
    not seen.

    The gate counts its verdict for that commit. A job started under this id before is returned.
    """
    whole = jobs.tree(service, job_id)
    order = f"service job review {job_id}"
    tree = branches.of_tree(service, whole.task.root_job_id, typed=order, fresh=True)
    if root and job_rows.get(service.store, root) and (before := tree_rows.get(service.store, root)):
        asked = before.start.assignment
        _tell(service, tree, asked.base, root, asked.worker.name, actor)
        return _answer(root, tree, asked.worker.name, asked.base, Unseen((), ()))
    verdict = merge_gate.of_tree(service, tree.root_job_id, tree=tree)
    if not verdict.unseen or verdict.head is None:
        root_id = tree.root_job_id
        raise RefusedError(f"{root_id} has no commit that still needs a review", f"service job gate {root_id}")
    repo = branches.checkout(service, tree.repo, order)
    chosen = _reviewer(service, whole, verdict, agent)
    seen = [merge_gate.seen_by(service, whole, each) for each in verdict.unseen]
    new = _unseen(Path(repo.path), verdict.head, seen)
    message = "\n".join(_to_review(whole, new, seen))
    start = new_jobs.tree_of(service, chosen.worker, Action.REVIEW, message, repo, root=root)
    start = belonging(service, tree.root_job_id, start, base=verdict.head)
    start = start.model_copy(update={"title": follow_up_title("Review what is new in", whole)})
    started = await trees.start(service, start, repo.host)
    _tell(service, tree, verdict.head, started, chosen.worker.name, actor)
    return _answer(started, tree, chosen.worker.name, verdict.head, new)


def _answer(job_id: str, tree: Branches, agent: str, head: str, new: Unseen) -> ReviewAnswer:
    names = {"job_id": job_id, "root_job_id": tree.root_job_id, "agent": agent}
    return ReviewAnswer(**names, head=head, commits=new.commits, files=new.files)


def _reviewer(service: Service, whole: Tree, verdict: GateVerdict, wanted: str) -> Agent:
    """Return the wanted agent, else the first able one: those who reviewed the tree before, then others of the
    repository.
    """
    repo, before = whole.task.repo, [job.agent for job in whole.jobs if job.job_id in verdict.unseen]
    agent = choose(service, Action.REVIEW, repo, wanted, before)
    if agent is None:
        raise UsageError(f"no agent that may work on {repo} has the capability review", "service agent list")
    return agent


def _unseen(repo: Path, head: str, seen: Sequence[tuple[str, ...]]) -> Unseen:
    """Return the commits that at least one of the reviews has not seen; none if it is unknown what they saw."""
    by_review = [unseen(repo, head, commits) for commits in seen if commits]
    commits = dict.fromkeys(commit for one in by_review for commit in one.commits)
    return Unseen(tuple(commits), tuple(sorted({file for one in by_review for file in one.files})))


def _to_review(whole: Tree, new: Unseen, seen: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the agent's message, which names the commits that earlier reviews have not seen."""
    yield f"Review the work of the task {inline(whole.task.title)}, which is checked out here."
    if not new.commits:
        yield "What the earlier reviews looked at is not known: review all of it."
        return
    yield "Earlier reviews approved it without these commits. Judge whether the whole may be merged with them:"
    yield ""
    yield from (f"- {inline(commit)}" for commit in new.commits[:LISTED])
    if len(new.commits) > LISTED:
        yield f"- and {len(new.commits) - LISTED} more"
    by_all = [commit[:12] for commit in seen[0] if all(commit in each for each in seen)]
    yield ""
    yield f"`git log -p --remerge-diff HEAD --not {' '.join(by_all)}` shows them. Change nothing."


def _tell(service: Service, tree: Branches, head: str, job_id: str, agent: str, actor: str) -> None:
    """Record the request in the reviewed tree, where the gate finds it."""
    event = BranchEvent(
        actor=actor, branch=tree.task_branch, head_sha=head, task_branch=tree.task_branch, merged=False, review=job_id
    )
    message = f"{actor} asked {agent} to review {head[:7]}: {job_id}"
    branch_rows.record(service.store, BranchEventKind.REVIEW_ASKED, tree.root_job_id, event, message)
