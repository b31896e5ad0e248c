"""Removing branches of a tree on an operator's order: the branch of one leg, or all of them (rulings I5, O6)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from activities.git import branches as git
from activities.git import hub
from activities.store import branches as stored
from activities.store.registry import repos
from bridge.operations.branches import branches, hub_work, task_line
from bridge.operations.branches.branches import Branches, BranchState, LegBranch
from bridge.operations.branches.merges import writer
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.model.errors import Commands, NotFoundError, RefusedError
from workflows.model.event_payloads import BranchEvent, BranchEventKind
from workflows.model.states import JobState

SHOWN = 3
"""Branches that a refusal names."""


@dataclass(frozen=True)
class Dropped:
    """A removed branch, and the commit it pointed to."""

    job_id: str
    branch: str
    head_sha: str
    path: str
    merged: bool
    back: str
    """The command that brings it back."""


@dataclass(frozen=True)
class Gone(Dropped):
    """The branch that is gone, of a tree the first of them; all of them; and that of the task if it has to stay."""

    root_job_id: str
    dropped: tuple[Dropped, ...]
    stays: str
    """The task's branch, where it alone has the work; else empty."""

    @property
    def ways_on(self) -> tuple[str, ...]:
        """Return the commands that make the remaining branch safe to drop, then the command that drops it now; empty if
        none stays.
        """
        root = self.root_job_id
        ways = (f"service job merge {root} --into-mine", f"service job drop {root}", f"service job drop {root} --force")
        return ways if self.stays else ()


def drop(service: Service, job_id: str, *, actor: str, force: bool) -> Gone:
    """Remove the branch of a leg, or, by the job id of its root, every branch of a tree (ruling O6)."""
    if jobs.get(service, job_id).parent_job_id is None:
        return _drop_tree(service, job_id, actor, force)
    return _drop_leg(service, job_id, actor, force)


def _drop_leg(service: Service, job_id: str, actor: str, force: bool) -> Gone:
    """Remove a leg's branch if it is merged, or in any case with `force`; dependent jobs then run without its work."""
    job = writer(service, job_id)
    tree = branches.of_tree(service, job_id, typed=_typed(job_id, force=force), fresh=True)
    path = Path(tree.path)
    leg = next(each for each in tree.legs if each.job_id == job_id)
    busy = [each for each in tree.legs if each.branch == leg.branch and each.state is BranchState.RUNNING]
    if busy or leg.state is BranchState.WAITING:
        raise RefusedError(f"{job_id} is still {job.state}: its branch is in use", f"service job kill {job_id}")
    if not leg.exists:
        raise NotFoundError(f"{job_id} has no branch (any more)", f"service job branches {tree.root_job_id}")
    if leg.state is BranchState.UNMERGED and not force:
        merge = [leg.merge] if leg.merge else []
        raise RefusedError(
            f"{leg.branch} has {leg.ahead} commit(s) that are not in {tree.task_branch}; dropping it loses them",
            Commands(*merge, f"service job drop {job_id} --force"),
        )
    _refuse_in_use(path, leg.branch)
    return _gone(tree, _dropped(service, tree, [leg], None, actor))


def _drop_tree(service: Service, job_id: str, actor: str, force: bool) -> Gone:
    """Remove every branch of a tree or, without `force`, none if one of them is unmerged.

    The task's branch stays, unless forced, until its work is in the branch that is checked out.
    """
    tree = branches.of_tree(service, job_id, typed=_typed(job_id, force=force), fresh=True)
    path = Path(tree.path)
    legs = list({leg.branch: leg for leg in tree.legs if leg.exists}.values())
    if busy := [leg.job_id for leg in tree.legs if leg.state in {BranchState.RUNNING, BranchState.WAITING}]:
        raise RefusedError(f"{busy[0]} still works on its branch", f"service job kill {tree.root_job_id}")
    head = tree.head if tree.owns_task_branch else None
    if not legs and head is None:
        raise NotFoundError(f"{tree.root_job_id} has no branch (any more)", f"service job branches {tree.root_job_id}")
    stays = "" if force or head is None or git.contains(path, "HEAD", head) else tree.task_branch
    if not force:
        _refuse_lost(service, path, tree, legs, stays)
    head = None if stays else head
    for branch in (*(leg.branch for leg in legs), *([tree.task_branch] if head else [])):
        _refuse_in_use(path, branch)
    return _gone(tree, _dropped(service, tree, legs, head, actor), stays)


def _typed(job_id: str, *, force: bool) -> str:
    return f"service job drop {job_id}{' --force' if force else ''}"


def _gone(tree: Branches, dropped: Sequence[Dropped], stays: str = "") -> Gone:
    return Gone(**asdict(dropped[0]), root_job_id=tree.root_job_id, dropped=tuple(dropped), stays=stays)


def _refuse_lost(service: Service, path: Path, tree: Branches, legs: Sequence[LegBranch], stays: str) -> None:
    lost = [leg for leg in legs if leg.state is BranchState.UNMERGED and not git.contains(path, "HEAD", leg.branch)]
    if tree.line and tree.head and git.contains(path, tree.head, tree.line):  # the result was applied
        lost = [leg for leg in lost if leg.job_state is JobState.SUCCEEDED]
    if not lost and (legs or not stays):
        return
    kept, root = [*(leg.branch for leg in lost), *([stays] if stays else [])], tree.root_job_id
    taken = task_line.on_line(tree) if tree.line else [leg for leg in lost if not leg.objection]
    helps = bool(stays) or any(leg in taken and leg.merge for leg in lost)
    out = task_line.missing(task_line.offer(service, jobs.tree(service, root), tree), tree)
    raise RefusedError(
        f"{len(kept)} branch(es) of {root} have commits that are merged nowhere; dropping loses them: "
        f"{', '.join(kept[:SHOWN])}{', …' if len(kept) > SHOWN else ''}",
        Commands(
            *([f"service job merge {root} --into-mine{task_line.without(out)}"] if helps else []),
            f"service job branches {root}",
            f"service job drop {root} --force",
        ),
    )


def _refuse_in_use(path: Path, branch: str) -> None:
    if where := git.checkout_of(path, branch):
        raise RefusedError(f"{branch} is checked out in {where}", branches.leave(where))


def _dropped(
    service: Service, tree: Branches, legs: Sequence[LegBranch], head: str | None, actor: str
) -> list[Dropped]:
    """Remove the branches of these legs, and the task's with its head: at the hub first, as other hosts fetch there."""
    path, repo = Path(tree.path), repos.registered(service.store, tree.repo)
    dropping = [(leg.job_id, leg.branch, leg.head_sha or "", leg.state is not BranchState.UNMERGED) for leg in legs]
    dropping += [(tree.root_job_id, tree.task_branch, head, False)] if head else []
    gone = list[Dropped]()
    for job_id, branch, tip, is_merged in dropping:
        merged = is_merged or git.contains(path, "HEAD", tip)
        back = hub_work.restore(service, repo, branch, tip) or branches.restore(tree.path, branch, tip)
        gone.append(Dropped(job_id, branch, tip, tree.path, merged, back))
        # Before it is done: a branch that vanishes without a record counts as lost.
        event = BranchEvent(actor=actor, branch=branch, head_sha=tip, task_branch=tree.task_branch, merged=merged)
        message = f"{actor} dropped {branch} ({'merged' if merged else 'not merged'}); it was at {tip}"
        stored.record(service.store, BranchEventKind.DROPPED, job_id, event, message)
    hub_work.remove(service, repo, [name for each in gone for name in (each.branch, f"{each.branch}{hub.AT_HOST}*")])
    for each in gone:
        git.delete(path, each.branch, each.head_sha)
    return gone
