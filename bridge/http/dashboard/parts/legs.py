"""Branches of a tree's legs, as its pages show them, and the outcomes of orders on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.git import git_branches
from bridge.http.dashboard.frame.page import ActionNote, Done, SubmittedForm
from bridge.http.dashboard.parts.slow_answers import Recent
from bridge.operations.branches import branches, drops, merge_gate, merge_offer, merges
from bridge.operations.branches.branches import Branches, BranchState, WayOut
from bridge.operations.branches.merge_offer import OmittedLeg
from bridge.operations.branches.outcome import MergedWork, merged_work, own_branch
from bridge.operations.jobs import output
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import follow_ups
from bridge.operations.orders.trees import Killed
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.github.merge_gate import GateVerdict
from workflows.model.errors import ServiceError
from workflows.model.rows import EventRecord
from workflows.model.states import JobState, TaskState


@dataclass(frozen=True)
class Finish:
    """The orders that the page of a tree offers once that is over (ruling O6)."""

    merges: bool
    """Something isn't in the task's branch yet, or that not in the branch that is checked out."""
    parts: int
    """How many parts a merge into the operator's own branch brings."""
    drops: int
    """The number of part branches that can be deleted."""
    drops_own: bool
    """True if the task's own branch can be deleted."""
    objected: bool
    left_out: tuple[OmittedLeg, ...] = ()
    missing: tuple[OmittedLeg, ...] = ()
    """The parts that a merge into the operator's own branch takes only if they are named."""
    mine: str = ""
    """The name of the operator's own branch."""
    merged: MergedWork | None = None
    """The branch that has all the work, once nothing is left to merge."""

    @property
    def deletes(self) -> str:
        """Return which branches can be deleted, for a button; empty if there is none."""
        parts = f"the {self.drops} part branches" if self.drops > 1 else "the part's branch" if self.drops else ""
        return " and ".join(filter(None, (parts, "the task's branch" if self.drops_own else "")))


@dataclass(frozen=True)
class WayToTakeOver:
    """The way to have a tree's work in a checkout: the branch and the command that switches to it, or the number of
    branches to choose from.
    """

    branch: str = ""
    command: str = ""
    branches: int = 0


LOG_ENTRIES, LOG_LETTERS = 6, 800
"""How much of the end of a failed part's log stands beside the failure."""

_branches = Recent[Branches](seconds=10)
_verdicts = Recent[GateVerdict](seconds=10)
_finishes = Recent[Finish](seconds=10)
_log_ends = Recent[str](seconds=60)
_conflicts = Recent[tuple[WayOut, ...]](seconds=10)


def branches_of(
    service: Service, tree: Tree, events: Sequence[EventRecord], only: str | None = None
) -> Branches | None:
    """Return every branch of a tree, or one job's; None if none of its jobs may write."""
    if not any(job.action is Action.IMPLEMENT and only in (None, job.job_id) for job in tree.jobs):
        return None
    moment, root = (*_moment(service, tree, events), only), tree.task.root_job_id
    return _branches.get(moment, lambda: branches.of_tree(service, root, only=only))


def verdict_of(
    service: Service, tree: Tree, events: Sequence[EventRecord], listed: Branches | None
) -> GateVerdict | None:
    """Return the merge gate's verdict; None while the tree is not done, or if it wrote nothing."""
    if tree.task.state is not TaskState.DONE or listed is None:
        return None
    root, moment = tree.task.root_job_id, (*_moment(service, tree, events), listed.head)
    return _verdicts.get(moment, lambda: merge_gate.of_tree(service, root, tree=listed))


def conflicts_of(service: Service, tree: Tree, events: Sequence[EventRecord]) -> tuple[WayOut, ...]:
    """Return the conflicts between legs that block jobs of this tree."""
    if not any(job.state is JobState.BLOCKED for job in tree.jobs):
        return ()
    root = tree.task.root_job_id
    return _conflicts.get(_moment(service, tree, events), lambda: tuple(branches.ways_out(service, [root])))


def finish_of(service: Service, tree: Tree, events: Sequence[EventRecord], listed: Branches | None) -> Finish | None:
    """Return the orders that the page offers; None while the tree is running, or if its branches can't be read here."""
    if listed is None or listed.problem or not tree.over:
        return None
    checked_out = git_branches.commit(Path(listed.path), "HEAD")
    moment = (*_moment(service, tree, events), listed.head, checked_out)
    return _finishes.get(moment, lambda: _finish(service, tree, listed))


def _finish(service: Service, tree: Tree, listed: Branches) -> Finish:
    offer = merge_offer.offer(service, tree, listed)
    apart = bool(listed.head) and not git_branches.contains(Path(listed.path), "HEAD", listed.head or "")
    fresh = {leg.branch for leg in offer.fresh}
    brings = [leg for leg in listed.legs if leg.branch in fresh or leg.state is BranchState.MERGED]
    fits = bool(listed.line) or tree.task.state is not TaskState.BLOCKED
    return Finish(
        merges=fits and (bool(offer.fresh) or apart),
        parts=sum(not git_branches.contains(Path(listed.path), "HEAD", leg.head_sha or "") for leg in brings),
        mine=own_branch(listed),
        merged=None if offer.fresh else merged_work(listed),
        drops=sum(leg.exists for leg in listed.legs),
        drops_own=bool(listed.head and listed.owns_task_branch),
        objected=bool(offer.objected),
        left_out=offer.left_out,
        missing=tuple(merge_offer.missing(offer, listed)),
    )


def take_over(listed: Branches | None, finish: Finish | None) -> WayToTakeOver | None:
    """Return how to take a tree's work over; None if there is none, or the operator's own branch has it."""
    if listed is None or listed.problem or (finish and finish.merged and finish.merged.is_mine):
        return None
    makes = "" if listed.head else f"service job merge {listed.root_job_id} && "
    if not listed.default and (listed.head or (finish and finish.merges)):
        return WayToTakeOver(listed.task_branch, f"{makes}git switch {listed.task_branch}")
    made = [leg.branch for leg in listed.legs if leg.exists]
    if len(made) == 1:
        return WayToTakeOver(made[0], made[0] if listed.default else f"git switch {made[0]}")
    return WayToTakeOver(branches=len(made)) if made else None


def _moment(service: Service, tree: Tree, events: Sequence[EventRecord]) -> tuple[object, ...]:
    """Return a cache key that changes whenever the tree changes, or somebody merges or drops a branch."""
    states = tuple((job.state, job.attempt) for job in tree.jobs)
    return (str(service.home.root), tree.task.root_job_id, events[-1].seq if events else 0, states)


def merge(service: Service, job_ids: Sequence[str], form: SubmittedForm) -> Done:
    """Merge these legs, all or none, and say how to get the result into the operator's own branch."""
    anyway = form.text("anyway", "") == "yes"
    mine = form.text("do", "") == "merge-mine"
    without = form.all("without") if mine else ()
    what = merges.merge(service, job_ids, actor=form.actor_in_words, anyway=anyway, into_mine=mine, without=without)
    notes = [ActionNote(f"is merged into {what.task_branch}", about=leg) for leg in what.merged]
    notes += [ActionNote(f"was already merged into {what.task_branch}", about=leg) for leg in what.already]
    notes += [
        ActionNote(left_out.says, done=False, hint=left_out.commands[0], about=left_out.branch)
        for left_out in what.left_out
    ]
    if what.into_mine:
        missing = [note for note in notes if not note.done]
        name = own_branch(branches.of_tree(service, what.root_job_id))
        return Done((ActionNote(f"Your branch {name} has the work now."), *missing))
    kept = "The default branch" if what.default else "Your branch"
    text = f"{kept} is as it was. To take the work over, type it there."
    return Done((*notes, ActionNote(text, hint=what.taking_over)))


def log_end(service: Service, job_id: str, attempt: int) -> str:
    """Return the end of what a failed attempt printed; empty if it can't be read from here."""
    return _log_ends.get((str(service.home.root), job_id, attempt), lambda: _log_end(service, job_id, attempt))


def _log_end(service: Service, job_id: str, attempt: int) -> str:
    try:
        log = output.log(service, job_id, attempt, limit=LOG_ENTRIES, longest=LOG_LETTERS)
    except ServiceError:
        return ""
    return "\n".join(entry.text for entry in log.entries if entry.text)[-LOG_LETTERS:]


def drop(service: Service, job_id: str, form: SubmittedForm) -> ActionNote:
    """Remove one leg's branch and say how to restore it, or say why it stays."""
    try:
        gone = drops.drop(service, job_id, actor=form.actor_in_words, force=form.text("force", "") == "yes")
    except ServiceError as error:
        return ActionNote(error.message, done=False, hint=error.hint or "", about=job_id)
    first, *others = gone.dropped
    text = f"{first.branch} is dropped. It can be brought back."
    if others:
        text = f"{len(gone.dropped)} branches are dropped. To bring back the first (and others likewise):"
    if gone.stays:
        text += f" {gone.stays} stays: its work is not in the branch you have checked out."
    return ActionNote(text, hint=first.back, about=job_id)


async def resolve(service: Service, root: str) -> Done:
    """Start the job that brings together what conflicts."""
    started = await follow_ups.resolve(service, root)
    command = f"service job merge {started.job_id}"
    text = f"{started.agent} brings the work together. When it has succeeded, merge its job."
    return Done((ActionNote(text, hint=command, about=started.job_id, page=f"/ui/trees/{started.job_id}"),))


async def review(service: Service, root: str, form: SubmittedForm) -> Done:
    """Start a review of the commits that no review of the tree has seen."""
    started = await follow_ups.review(service, root, actor=form.actor_in_words)
    text = f"{started.agent} reviews {started.head[:7]}. When it is done, this page shows whether the work is ready."
    return Done((ActionNote(text, about=started.job_id, page=f"/ui/trees/{started.job_id}"),))


def over(killed: Killed) -> Done:
    """Report a given-up task with its unmerged branches, which would be forgotten otherwise."""
    left = (
        ActionNote("is not merged", hint=leg.merge or f"service job drop {leg.job_id} --force", about=leg.branch)
        for leg in killed.unmerged
    )
    text = "The task is given up. Nobody is reminded of it again, and its branches stay."
    return Done((ActionNote(text, about=killed.root_job_id), *left))
