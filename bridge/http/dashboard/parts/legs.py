"""Branches of a tree's legs, as its pages show them, and the outcomes of orders on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.git import git_branches
from bridge.http.dashboard.frame.page import Done, Form, Note
from bridge.http.dashboard.parts.slow_answers import Recent
from bridge.operations.branches import branches, drops, merge_gate, merges, task_line
from bridge.operations.branches.branches import Branches, WayOut
from bridge.operations.branches.task_line import LeftOutLeg
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import follow_ups
from bridge.operations.orders.trees import Killed
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.github.merge_gate import Verdict
from workflows.model.errors import ServiceError
from workflows.model.rows import EventRecord
from workflows.model.states import JobState, TaskState


@dataclass(frozen=True)
class Finish:
    """The orders that the page of a tree offers once that is over (ruling O6)."""

    merges: bool
    """Something isn't in the task's branch yet, or that not in the branch that is checked out."""
    drops: bool
    objected: bool
    left_out: tuple[LeftOutLeg, ...] = ()
    missing: tuple[LeftOutLeg, ...] = ()
    """The parts that a merge into the operator's own branch takes only if they are named."""


_branches = Recent[Branches](seconds=10)
_verdicts = Recent[Verdict](seconds=10)
_finishes = Recent[Finish](seconds=10)
_conflicts = Recent[tuple[WayOut, ...]](seconds=10)


def branches_of(service: Service, tree: Tree, told: Sequence[EventRecord], only: str | None = None) -> Branches | None:
    """Return every branch of a tree, or one job's; None if none of its jobs may write."""
    if not any(job.action is Action.IMPLEMENT and only in (None, job.job_id) for job in tree.jobs):
        return None
    moment, root = (*_moment(service, tree, told), only), tree.task.root_job_id
    return _branches.get(moment, lambda: branches.of_tree(service, root, only=only))


def verdict_of(service: Service, tree: Tree, told: Sequence[EventRecord], found: Branches | None) -> Verdict | None:
    """Return the merge gate's verdict; None while the tree is not done, or if it wrote nothing."""
    if tree.task.state is not TaskState.DONE or found is None:
        return None
    root, moment = tree.task.root_job_id, (*_moment(service, tree, told), found.head)
    return _verdicts.get(moment, lambda: merge_gate.of_tree(service, root, tree=found))


def conflicts_of(service: Service, tree: Tree, told: Sequence[EventRecord]) -> tuple[WayOut, ...]:
    """Return the conflicts between legs that block jobs of this tree."""
    if not any(job.state is JobState.BLOCKED for job in tree.jobs):
        return ()
    root = tree.task.root_job_id
    return _conflicts.get(_moment(service, tree, told), lambda: tuple(branches.ways_out(service, [root])))


def finish_of(service: Service, tree: Tree, told: Sequence[EventRecord], found: Branches | None) -> Finish | None:
    """Return the orders that the page offers; None while the tree is running, or if its branches can't be read here."""
    if found is None or found.problem or not tree.over:
        return None
    checked_out = git_branches.commit(Path(found.path), "HEAD")
    moment = (*_moment(service, tree, told), found.head, checked_out)
    return _finishes.get(moment, lambda: _finish(service, tree, found))


def _finish(service: Service, tree: Tree, found: Branches) -> Finish:
    offer = task_line.offer(service, tree, found)
    apart = bool(found.head) and not git_branches.contains(Path(found.path), "HEAD", found.head or "")
    fits = bool(found.line) or tree.task.state is not TaskState.BLOCKED
    return Finish(
        merges=fits and (bool(offer.fresh) or apart),
        drops=any(leg.exists for leg in found.legs) or bool(found.head and found.owns_task_branch),
        objected=bool(offer.objected),
        left_out=offer.left_out,
        missing=tuple(task_line.missing(offer, found)),
    )


def _moment(service: Service, tree: Tree, told: Sequence[EventRecord]) -> tuple[object, ...]:
    """Return a cache key that changes whenever the tree changes, or somebody merges or drops a branch."""
    states = tuple((job.state, job.attempt) for job in tree.jobs)
    return (str(service.home.root), tree.task.root_job_id, told[-1].seq if told else 0, states)


def merged(service: Service, job_ids: Sequence[str], form: Form) -> Done:
    """Merge these legs, all or none, and say how to get the result into the operator's own branch."""
    anyway = form.text("anyway", "") == "yes"
    mine = form.text("do", "") == "merge-mine"
    without = form.all("without") if mine else ()
    what = merges.merge(service, job_ids, actor=form.signed, anyway=anyway, into_mine=mine, without=without)
    notes = [Note(f"is merged into {what.task_branch}", about=leg) for leg in what.merged]
    notes += [Note(f"was already merged into {what.task_branch}", about=leg) for leg in what.already]
    notes += [Note(each.says, done=False, hint=each.commands[0], about=each.branch) for each in what.left_out]
    if what.into_mine:
        clean_up = f"service job drop {job_ids[0]}"
        notes.append(Note(f"{what.task_branch} {what.into_mine} in {what.default or 'your checkout'}.", hint=clean_up))
        return Done(tuple(notes))
    kept = "The default branch" if what.default else "Your checkout"
    return Done((*notes, Note(f"{kept} is as it was. To take the work over, type it there.", hint=what.taking_over)))


def dropped(service: Service, job_id: str, form: Form) -> Note:
    """Remove one leg's branch and say how to restore it, or say why it stays."""
    try:
        gone = drops.drop(service, job_id, actor=form.signed, force=form.text("force", "") == "yes")
    except ServiceError as error:
        return Note(error.message, done=False, hint=error.hint or "", about=job_id)
    first, *others = gone.dropped
    said = f"{first.branch} is dropped. It can be brought back."
    if others:
        said = f"{len(gone.dropped)} branches are dropped. To bring back the first (and others likewise):"
    if gone.stays:
        said += f" {gone.stays} stays: its work is not in the branch you have checked out."
    return Note(said, hint=first.back, about=job_id)


async def resolved(service: Service, root: str) -> Done:
    """Start the job that brings together what conflicts."""
    started = await follow_ups.resolve(service, root)
    merge = f"service job merge {started.job_id}"
    said = f"{started.agent} brings the work together. When it has succeeded, merge its job."
    return Done((Note(said, hint=merge, about=started.job_id, page=f"/ui/trees/{started.job_id}"),))


async def reviewed(service: Service, root: str, form: Form) -> Done:
    """Start a review of the commits that no review of the tree has seen."""
    started = await follow_ups.review(service, root, actor=form.signed)
    said = f"{started.agent} reviews {started.head[:7]}. When it is done, this page shows whether the work is ready."
    return Done((Note(said, about=started.job_id, page=f"/ui/trees/{started.job_id}"),))


def over(killed: Killed) -> Done:
    """Report a given-up task with its unmerged branches, which would be forgotten otherwise."""
    left = (
        Note("is not merged", hint=leg.merge or f"service job drop {leg.job_id} --force", about=leg.branch)
        for leg in killed.unmerged
    )
    said = "The task is given up. Nobody is reminded of it again, and its branches stay."
    return Done((Note(said, about=killed.root_job_id), *left))
