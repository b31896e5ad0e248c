"""What an operator orders for legs' branches: merge them into the task branch, or drop them (ruling I5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.git import branches as git
from activities.git import command as program
from activities.git.task_branch import Contribution, Merged, TaskBranchConflict, merge_all
from activities.store import branches as stored
from bridge.operations import branches, jobs
from bridge.operations.branches import Branches, BranchState, LegBranch
from bridge.operations.foreign import refuse_foreign
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.model.branch_events import BranchEvent, BranchEventKind
from workflows.model.errors import Commands, NotFoundError, RefusedError, UsageError
from workflows.model.rows import JobRecord, TaskRecord
from workflows.model.states import JobState, WaitsFor

SHOWN = 3
"""Branches that a refusal names."""


@dataclass(frozen=True)
class MergedLegs:
    """What a merge did: legs that are in the task branch now, and those that were already."""

    repo: str
    task_branch: str
    head: str
    path: str
    merged: tuple[str, ...]
    already: tuple[str, ...]


@dataclass(frozen=True)
class Dropped:
    """A branch that is gone, and where it pointed."""

    job_id: str
    branch: str
    head_sha: str
    path: str
    merged: bool


def merge(service: Service, job_ids: Sequence[str], *, actor: str, anyway: bool = False) -> MergedLegs:
    """Merge legs into the branch of their task, in the order given: all of them or, with a reason, none. A job that has
    no branch of its own, as a coordinator, stands for all legs of its tree that can be merged.

    What was decided against, by the leg or by who checked it, is merged only `anyway`, and that is told (ruling L10).
    """
    job_ids = [leg for job_id in job_ids for leg in _ready(service, job_id)]
    wanted = [_writer(service, job_id) for job_id in dict.fromkeys(job_ids)]
    if len({job.root_job_id for job in wanted}) > 1:
        raise UsageError(f"{wanted[0].job_id} and the others are of several trees", "one `service job merge` for each")
    path = Path(branches.checkout(service, wanted[0].repo).path)
    tree = branches.of_tree(service, wanted[0].job_id)
    legs = [_mergeable(tree, job) for job in wanted]
    pending = [leg for leg in legs if leg.state is BranchState.UNMERGED]
    for leg in pending:
        refuse_foreign(service, tree, leg, "; nothing was merged")
    if not anyway:
        _refuse_objected(pending, jobs.tree(service, tree.root_job_id).task, job_ids)
    done = _merge(path, tree, pending)
    for leg in legs if done else ():
        objection = leg.objection if leg in pending else ""
        message = f"{actor} merged {leg.branch} into {tree.task_branch}"
        message += f", although {objection}" if objection else ""
        event = _event(tree, leg, actor, merged=True).model_copy(update={"anyway": objection})
        stored.tell(service.store, BranchEventKind.MERGED, leg.job_id, event, message)
    fresh = {each.job_id for each in done.fresh} if done else set()
    return MergedLegs(
        repo=tree.repo,
        task_branch=tree.task_branch,
        head=done.head if done else tree.head or "",
        path=str(path),
        merged=tuple(leg.job_id for leg in legs if leg.job_id in fresh),
        already=tuple(leg.job_id for leg in legs if leg.job_id not in fresh),
    )


def is_tree(service: Service, job_id: str) -> bool:
    """Whether the job stands for its tree: a root that has no branch of its own."""
    job = jobs.get(service, job_id)
    return job.action is not Action.IMPLEMENT and job.job_id == job.root_job_id


def _ready(service: Service, job_id: str) -> list[str]:
    """The job, or the legs of the tree of a root that writes nothing itself, in the order they were dispatched."""
    if not is_tree(service, job_id):
        return [job_id]
    legs = branches.of_tree(service, job_id).legs
    ready = [leg.job_id for leg in legs if leg.merge_command and not leg.objection]
    there = [leg.job_id for leg in legs if leg.state is BranchState.MERGED]
    if not ready and not there:
        raise RefusedError(f"no leg of {job_id} can be merged", f"service job branches {job_id}")
    return ready or there


def _refuse_objected(legs: Sequence[LegBranch], task: TaskRecord, job_ids: Sequence[str]) -> None:
    against = [leg for leg in legs if leg.objection]
    if not against:
        return
    said = "; ".join(f"leg {leg.leg} ({leg.job_id}) is not approved: {leg.objection}" for leg in against)
    ways = [
        *(f"service job show {each}" for each in dict.fromkeys(leg.objector for leg in against)),
        *([task.next] if task.waits_for is WaitsFor.RETRY else []),
        f"service job merge {' '.join(job_ids)} --anyway",
    ]
    raise RefusedError(f"{said}; nothing was merged", Commands(*ways))


def _merge(path: Path, tree: Branches, legs: Sequence[LegBranch]) -> Merged | None:
    """Merge them, also when nothing is left to merge: so a merge whose event got lost is told."""
    if tree.head is None and not legs:
        return None
    try:
        start = tree.head or legs[0].base_sha or legs[0].head_sha or ""
        parts = [Contribution(leg.leg, leg.job_id, leg.branch, leg.head_sha or "") for leg in legs]
        return merge_all(path, tree.task_branch, start, parts)
    except TaskBranchConflict as conflict:
        raise _explained(path, tree, legs, conflict) from None
    except RefusedError as refused:
        if refused.hint or not (where := git.checkout_of(path, tree.task_branch)):
            raise
        by_hand = "; ".join(f"git -C {where} merge --no-ff {leg.branch}" for leg in legs)
        raise RefusedError(refused.message, by_hand) from None


def _explained(
    path: Path, tree: Branches, legs: Sequence[LegBranch], conflict: TaskBranchConflict
) -> TaskBranchConflict:
    """With the legs it clashes with by name, and what a person types to go on."""
    clashing = next(leg for leg in legs if leg.job_id == conflict.clashing.job_id)
    before = [each.job_id for each in conflict.before]
    there = [leg for leg in tree.legs if leg.state is BranchState.MERGED or leg.job_id in before]
    touching = [leg for leg in there if branches.touched(path, leg) & set(conflict.files)]
    others = " and ".join(f"leg {leg.leg} ({leg.job_id})" for leg in touching) or f"what is on {tree.task_branch}"
    conflict.message = (
        f"leg {clashing.leg} ({clashing.job_id}) conflicts with {others} in {', '.join(conflict.files)};"
        " nothing was changed"
    )
    insists = " --anyway" if any(leg.objection for leg in legs if leg.job_id in before) else ""
    first = [f"service job merge {' '.join(before)}{insists}"] if before else []
    conflict.hint = Commands(*first, *branches.by_hand(tree.path, tree.task_branch, clashing.branch))
    return conflict


def _event(tree: Branches, leg: LegBranch, actor: str, *, merged: bool) -> BranchEvent:
    return BranchEvent(
        actor=actor, branch=leg.branch, head_sha=leg.head_sha or "", task_branch=tree.task_branch, merged=merged
    )


def _writer(service: Service, job_id: str) -> JobRecord:
    job = jobs.get(service, job_id)
    if job.action is not Action.IMPLEMENT:
        raise RefusedError(
            f"{job_id} ({job.action}) has no branch: what it changed was thrown away",
            f"service job diff {job_id}",
        )
    return job


def _mergeable(tree: Branches, job: JobRecord) -> LegBranch:
    leg = next(each for each in tree.legs if each.job_id == job.job_id)
    match job.state:
        case JobState.SUCCEEDED:
            pass
        case JobState.QUEUED | JobState.RUNNING:
            raise RefusedError(f"{job.job_id} is still {job.state}", f"service job tree {job.job_id} --watch")
        case JobState.FAILED | JobState.BLOCKED | JobState.CANCELLED | JobState.SKIPPED:
            why = f": {job.reason}" if job.reason else ""
            raise RefusedError(
                f"{job.job_id} ended {job.state}{why}; only work that succeeded is merged",
                f"service job retry {job.job_id}",
            )
    if leg.state is BranchState.EMPTY:
        raise RefusedError(f"{job.job_id} changed nothing: there is nothing to merge", f"service job show {job.job_id}")
    if leg.state in {BranchState.GONE, BranchState.DROPPED}:
        raise _lost(tree, leg)
    return leg


def _lost(tree: Branches, leg: LegBranch) -> NotFoundError:
    """Its commits can outlive a branch: then one command brings it back."""
    how = "was dropped" if leg.state is BranchState.DROPPED else "is gone"
    message = f"the branch {leg.branch} of {leg.job_id} {how}"
    if leg.ahead is None:
        return NotFoundError(f"{message}, and so are its commits", f"service job branches {tree.root_job_id}")
    return NotFoundError(f"{message}; its commits are still there", restore(tree.path, leg.branch, leg.head_sha or ""))


def restore(path: str, branch: str, head: str) -> str:
    """The command that brings a branch back."""
    return f"git -C {path} branch {branch} {head}"


def drop(service: Service, job_id: str, *, actor: str, force: bool) -> Dropped:
    """Remove a leg's branch: a merged one, or with `force` any; what depends on the leg then goes without its work."""
    job = _writer(service, job_id)
    path = Path(branches.checkout(service, job.repo).path)
    tree = branches.of_tree(service, job_id)
    leg = next(each for each in tree.legs if each.job_id == job_id)
    busy = [each for each in tree.legs if each.branch == leg.branch and each.state is BranchState.RUNNING]
    if busy or leg.state is BranchState.WAITING:
        raise RefusedError(f"{job_id} is still {job.state}: its branch is in use", f"service job kill {job_id}")
    tip = git.tip(path, leg.branch) if leg.branch else None
    if tip is None:
        raise NotFoundError(f"{job_id} has no branch (any more)", f"service job branches {tree.root_job_id}")
    merged = leg.state is not BranchState.UNMERGED
    if not merged and not force:
        raise RefusedError(
            f"{leg.branch} has {leg.ahead} commit(s) that are not in {tree.task_branch}; dropping it loses them",
            f"service job merge {job_id}, or: service job drop {job_id} --force",
        )
    if where := git.checkout_of(path, leg.branch):
        raise RefusedError(f"{leg.branch} is checked out in {where}", f"git -C {path} worktree remove {where}")
    # Told before it is done: a branch that is gone and not told of counts as lost.
    event = _event(tree, leg, actor, merged=merged).model_copy(update={"head_sha": tip})
    message = f"{actor} dropped {leg.branch} ({'merged' if merged else 'not merged'}); it was at {tip}"
    stored.tell(service.store, BranchEventKind.DROPPED, job_id, event, message)
    git.delete(path, leg.branch, tip)
    return Dropped(job_id, leg.branch, tip, str(path), merged)


def drop_tree(service: Service, job_id: str, *, actor: str, force: bool) -> list[Dropped]:
    """Remove every branch of a tree, that of its task too, or none: what is merged nowhere takes `force`."""
    tree = branches.of_tree(service, job_id)
    path = Path(branches.checkout(service, tree.repo).path)
    legs = [leg for leg in tree.legs if leg.exists]
    if busy := [leg.job_id for leg in tree.legs if leg.state in {BranchState.RUNNING, BranchState.WAITING}]:
        raise RefusedError(f"{busy[0]} still works on its branch", f"service job kill {tree.root_job_id}")
    if not legs and tree.head is None:
        raise NotFoundError(f"{tree.root_job_id} has no branch (any more)", f"service job branches {tree.root_job_id}")
    kept = [leg.branch for leg in legs if leg.state is BranchState.UNMERGED]
    if tree.head and not git.contains(path, "HEAD", tree.head):
        kept.append(tree.task_branch)
    if kept and not force:
        takes_over, forced = f"service job merge {tree.root_job_id} --into-mine", f"service job drop {tree.root_job_id}"
        helps = tree.task_branch in kept or any(leg.merge_command and not leg.objection for leg in legs)
        raise RefusedError(
            f"{len(kept)} branch(es) of {tree.root_job_id} have commits that are merged nowhere; dropping loses them: "
            f"{', '.join(kept[:SHOWN])}{', …' if len(kept) > SHOWN else ''}",
            Commands(*([takes_over] if helps else []), f"service job branches {tree.root_job_id}", f"{forced} --force"),
        )
    for branch in (*(leg.branch for leg in legs), tree.task_branch):
        if where := git.checkout_of(path, branch):
            raise RefusedError(f"{branch} is checked out in {where}", f"git -C {where} switch -")
    gone = [drop(service, leg.job_id, actor=actor, force=force) for leg in legs]
    return [*gone, *([_drop_task_branch(service, path, tree, tree.head, actor)] if tree.head else [])]


def _drop_task_branch(service: Service, path: Path, tree: Branches, head: str, actor: str) -> Dropped:
    branch, merged = tree.task_branch, git.contains(path, "HEAD", head)
    event = BranchEvent(actor=actor, branch=branch, head_sha=head, task_branch=branch, merged=merged)
    message = f"{actor} dropped {branch} ({'merged' if merged else 'not merged'}); it was at {head}"
    stored.tell(service.store, BranchEventKind.DROPPED, tree.root_job_id, event, message)
    git.delete(path, branch, head)
    return Dropped(tree.root_job_id, branch, head, str(path), merged)


def into_checkout(service: Service, repo: str, task_branch: str) -> str:
    """Take the branch of a task over into the operator's own branch, by their own git; how that was done.

    A checkout with uncommitted changes is refused, and a conflict leaves it as it was.
    """
    path = Path(branches.checkout(service, repo).path)
    if changed := program.git(path, "status", "--porcelain", "--untracked-files=no").splitlines():
        raise RefusedError(
            f"{path} has {len(changed)} changed file(s) that are not committed, so nothing is merged into it",
            Commands(f"git -C {path} commit", f"git -C {path} stash", f"git -C {path} merge {task_branch}"),
        )
    before = program.line(path, "rev-parse", "HEAD")
    try:
        program.git(path, "merge", "--no-edit", task_branch)
    except program.GitError as error:
        files = program.all_printable(program.paths(program.git(path, "diff", "--name-only", "--diff-filter=U", "-z")))
        if files:
            program.git(path, "merge", "--abort")
        why = f"it conflicts in {', '.join(files)}" if files else str(error)
        raise RefusedError(
            f"{task_branch} is not merged into {path}: {why}; the checkout is as it was",
            f"git -C {path} merge {task_branch}",
        ) from None
    after, theirs = program.line(path, "rev-parse", "HEAD"), program.line(path, "rev-parse", task_branch)
    return "was there already" if after == before else "fast-forwarded" if after == theirs else "merged"
