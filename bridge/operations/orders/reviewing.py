"""Starting an agent that reviews what the reviews of a tree have not seen (ruling L10)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from activities.git.reviewed_commits import Unseen, unseen
from activities.store import branches as stored
from activities.store import trees as stored_trees
from activities.store.registry.agents import Agent
from bridge.operations.branches import branches, merge_gate
from bridge.operations.branches.branches import Branches
from bridge.operations.jobs import jobs
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import follow_ups, new_jobs, trees
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.github.merge_gate import Verdict
from workflows.model.errors import RefusedError, UsageError
from workflows.model.event_payloads import BranchEvent, BranchEventKind
from workflows.text.fences import inline

LISTED = 40
"""Commits that the message of a review lists."""


class ReviewAnswer(BaseModel, frozen=True):
    """The job that reviews it; the gate counts its verdict."""

    job_id: str
    root_job_id: str
    agent: str
    head: str = Field(description="The commit that it reviews.")
    commits: tuple[str, ...] = Field(description="The unseen commits, each with its subject.")
    files: tuple[str, ...] = Field(description="The files they change.")


async def review(
    service: Service, job_id: str, *, actor: str, agent: str = "", root: str | None = None
) -> ReviewAnswer:
    """Start a review of the commit that the gate judges, told what the tree's own reviews have not seen of it.

    The gate counts its verdict for that commit. A job started under this id before is returned.
    """
    whole = jobs.tree(service, job_id)
    order = f"service job review {job_id}"
    tree = branches.of_tree(service, whole.task.root_job_id, typed=order, fresh=True)
    if root and (before := stored_trees.get(service.store, root)):
        asked = before.start.assignment
        _tell(service, tree, asked.base, root, asked.worker.name, actor)
        return _answer(root, tree, asked.worker.name, asked.base, Unseen((), ()))
    verdict = merge_gate.of_tree(service, tree.root_job_id, found=tree)
    if not verdict.unseen or verdict.head is None:
        root_id = tree.root_job_id
        raise RefusedError(f"{root_id} has no commit that still needs a review", f"service job gate {root_id}")
    repo = branches.checkout(service, tree.repo, order)
    chosen = _agent(service, whole, verdict, agent)
    seen = [merge_gate.seen_by(service, whole, each) for each in verdict.unseen]
    new = _unseen(Path(repo.path), verdict.head, seen)
    message = "\n".join(_message(whole, new, seen))
    start = new_jobs.tree_of(service, chosen.worker, Action.REVIEW, message, repo, root=root)
    start = follow_ups.belonging(service, tree.root_job_id, start, base=verdict.head)
    start = start.model_copy(update={"title": follow_ups.titled("Review what is new in", whole)})
    started = await trees.start(service, start, repo.host)
    _tell(service, tree, verdict.head, started, chosen.worker.name, actor)
    return _answer(started, tree, chosen.worker.name, verdict.head, new)


def _answer(job_id: str, tree: Branches, agent: str, head: str, new: Unseen) -> ReviewAnswer:
    names = {"job_id": job_id, "root_job_id": tree.root_job_id, "agent": agent}
    return ReviewAnswer(**names, head=head, commits=new.commits, files=new.files)


def _agent(service: Service, whole: Tree, verdict: Verdict, wanted: str) -> Agent:
    """Return the wanted agent, else the first able one: who has reviewed before, then others of the repository."""
    repo, before = whole.task.repo, [job.agent for job in whole.jobs if job.job_id in verdict.unseen]
    agent = follow_ups.chosen(service, Action.REVIEW, repo, wanted, before)
    if agent is None:
        raise UsageError(f"no agent that may work on {repo} has the capability review", "service agent list")
    return agent


def _unseen(repo: Path, head: str, seen: Sequence[tuple[str, ...]]) -> Unseen:
    """Return what at least one of the reviews has not seen; nothing if what they saw is unknown."""
    each = [unseen(repo, head, commits) for commits in seen if commits]
    commits = dict.fromkeys(commit for one in each for commit in one.commits)
    return Unseen(tuple(commits), tuple(sorted({file for one in each for file in one.files})))


def _message(whole: Tree, new: Unseen, seen: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the agent's message: what the earlier reviews have not seen."""
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
    stored.record(service.store, BranchEventKind.REVIEW_ASKED, tree.root_job_id, event, message)
