"""Branches of a tree's legs, as its pages show them, and what becomes of orders on them."""

from collections.abc import Sequence

from bridge.http.dashboard.frame.page import Done, Form, Note
from bridge.http.dashboard.parts.recent import Recent
from bridge.operations import branches, gate, merges
from bridge.operations.branches import Branches, WayOut
from bridge.operations.jobs import Tree
from bridge.operations.service import Service
from bridge.operations.trees import Killed
from workflows.contract.models import Action
from workflows.github.gate import Verdict
from workflows.model.errors import ServiceError
from workflows.model.rows import EventRecord
from workflows.model.states import JobState, TaskState

_branches = Recent[Branches](seconds=10)
_verdicts = Recent[Verdict](seconds=10)
_conflicts = Recent[tuple[WayOut, ...]](seconds=10)


def branches_of(service: Service, tree: Tree, told: Sequence[EventRecord], only: str | None = None) -> Branches | None:
    """Every branch of a tree, or one job's; None where nothing of it may be written."""
    if not any(job.action is Action.IMPLEMENT and only in (None, job.job_id) for job in tree.jobs):
        return None
    moment, root = (*_moment(service, tree, told), only), tree.task.root_job_id
    return _branches.get(moment, lambda: branches.of_tree(service, root, only=only))


def verdict_of(service: Service, tree: Tree, told: Sequence[EventRecord], found: Branches | None) -> Verdict | None:
    """Whether the work is ready to be merged; None while the tree is not done, or where it wrote nothing."""
    if tree.task.state is not TaskState.DONE or found is None:
        return None
    root, moment = tree.task.root_job_id, (*_moment(service, tree, told), found.head)
    return _verdicts.get(moment, lambda: gate.of_tree(service, root, found=found))


def conflicts_of(service: Service, tree: Tree, told: Sequence[EventRecord]) -> tuple[WayOut, ...]:
    """What blocks a task because work does not fit together."""
    if not any(job.state is JobState.BLOCKED for job in tree.jobs):
        return ()
    root = tree.task.root_job_id
    return _conflicts.get(_moment(service, tree, told), lambda: tuple(branches.ways_out(service, [root])))


def _moment(service: Service, tree: Tree, told: Sequence[EventRecord]) -> tuple[object, ...]:
    """Another one as soon as the tree has gone on, or somebody has merged or dropped."""
    states = tuple((job.state, job.attempt) for job in tree.jobs)
    return (str(service.home.root), tree.task.root_job_id, told[-1].seq if told else 0, states)


def merged(service: Service, job_ids: Sequence[str], form: Form) -> Done:
    """Merge these, all or none, and say how to take the result over."""
    anyway = form.text("anyway", "") == "yes"
    what = merges.merge(service, job_ids, actor=form.signed, anyway=anyway)
    notes = [Note(f"is merged into {what.task_branch}", about=leg) for leg in what.merged]
    notes += [Note(f"was already merged into {what.task_branch}", about=leg) for leg in what.already]
    take_over = f"git -C {what.path} merge {what.task_branch}"
    return Done((*notes, Note("Your checkout is as it was. To take the work over, type it there.", hint=take_over)))


def dropped(service: Service, job_id: str, form: Form) -> Note:
    """Remove one leg's branch, and say how to bring it back; or why it stays."""
    try:
        gone = merges.drop(service, job_id, actor=form.signed, force=form.text("force", "") == "yes")
    except ServiceError as error:
        return Note(error.message, done=False, hint=error.hint or "", about=job_id)
    back = merges.restore(gone.path, gone.branch, gone.head_sha)
    return Note(f"{gone.branch} is dropped. It can be brought back.", hint=back, about=job_id)


def over(killed: Killed) -> Done:
    """What nobody has merged is named: it would be forgotten otherwise."""
    left = (
        Note("is not merged", hint=leg.merge_command or f"service job drop {leg.job_id}", about=leg.branch)
        for leg in killed.unmerged
    )
    said = "The task is given up. Nobody is reminded of it again, and its branches stay."
    return Done((Note(said, about=killed.root_job_id), *left))
