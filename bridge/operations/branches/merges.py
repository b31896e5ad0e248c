"""Merging a tree's branches into its task's branch, and the task's branch into the operator's branch (rulings I5,
O6).
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from activities.git import git_branches
from activities.git.merges.task_branch import Contribution, Merged, TaskBranchConflict, merge_all
from activities.store import branch_rows
from activities.store.registry import repo_rows
from bridge.operations.branches import branches, hub_work, merge_offer
from bridge.operations.branches.branches import Branches, BranchState, LegBranch
from bridge.operations.branches.into_mine import OwnBranch, into_checkout, into_default, is_bare, refuse_unfit
from bridge.operations.branches.merge_offer import OmittedLeg, refuse_foreign
from bridge.operations.jobs import jobs
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.model.errors import Commands, NotFoundError, RefusedError, UsageError
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.rows import JobRecord, TaskRecord
from workflows.model.states import JobState, WaitsFor


@dataclass(frozen=True)
class MergedLegs:
    """The result of a merge: legs that were merged into the task branch, legs that were merged before, and legs that
    conflict.
    """

    root_job_id: str
    repo: str
    task_branch: str
    head: str
    path: str
    merged: tuple[str, ...]
    already: tuple[str, ...]
    left_out: tuple[OmittedLeg, ...] = ()
    into_mine: str = ""
    """A sentence on the merge into the operator's branch; empty unless `--into-mine` was given."""
    default: str = ""
    """The default branch and its remote, which `--into-mine` means where there is no checkout; else empty."""

    @property
    def taking_over(self) -> str:
        """Return the command that merges the task's branch into the operator's branch, or into the default branch."""
        if self.default:
            return f"service job merge {self.root_job_id} --into-mine{merge_offer.without(self.left_out)}"
        where = shlex.quote(self.path)
        if is_bare(Path(self.path)):
            return f"git -C {where} push . {self.task_branch}:BRANCH   # a branch of yours"
        return f"git -C {where} merge {self.task_branch}"


def merge(
    service: Service,
    job_ids: Sequence[str],
    *,
    actor: str,
    anyway: bool = False,
    into_mine: bool = False,
    without: Sequence[str] = (),
) -> MergedLegs:
    """Merge legs into their task's branch. With `into_mine`, also merge the task's branch into the checked-out branch,
    or without a checkout into the remote's default branch.

    Raise before any merge if the checkout has uncommitted changes, or if a root's merge into the operator's branch
    would leave out a part that is not named in `without`.
    """
    names = "".join(f" --without {shlex.quote(name)}" for name in without)
    again = f"service job merge {' '.join(job_ids)}{' --anyway' if anyway else ''}"
    if not into_mine:
        if without:
            raise UsageError("`--without` is for `--into-mine`; nothing was merged", f"{again} --into-mine{names}")
        return _into_task_branch(service, job_ids, actor, anyway, again)
    again += f" --into-mine{names}"
    repo = branches.checkout(service, jobs.get(service, job_ids[0]).repo, again)
    path = Path(repo.path)
    if not repo.is_mirror:
        refuse_unfit(path, again)
    mine = OwnBranch(path, again, tuple(without))
    done = _into_task_branch(service, job_ids, actor, anyway, again, mine)
    tree = branches.of_tree(service, job_ids[0])
    taken = into_default(service, repo, tree) if repo.is_mirror else into_checkout(path, tree, again)
    return replace(done, into_mine=taken)


def _into_task_branch(
    service: Service, job_ids: Sequence[str], actor: str, anyway: bool, order: str, mine: OwnBranch | None = None
) -> MergedLegs:
    """Merge legs in the order given: all of them or, with a reason, none.

    The root's id stands for the tree's line if the tree has ended (ruling O6), and for all mergeable legs of an open
    tree without a root branch. Legs with an objection, their own or a checker's, are merged only with `anyway`, and
    that is recorded (ruling L10).
    """
    of_root = len(job_ids) == 1 and jobs.get(service, job_ids[0]).parent_job_id is None
    if of_root:
        tree = branches.of_tree(service, job_ids[0], typed=order, fresh=True)
        if tree.line:
            return _merge_line(service, tree, actor, anyway, mine)
    job_ids = [leg for job_id in job_ids for leg in _ready(service, job_id, anyway)]
    wanted = [writer(service, job_id) for job_id in dict.fromkeys(job_ids)]
    if len({job.root_job_id for job in wanted}) > 1:
        by_tree = dict[str, list[str]]()
        for job in wanted:
            by_tree.setdefault(job.root_job_id, []).append(job.job_id)
        ways = (f"service job merge {' '.join(legs)}{' --anyway' if anyway else ''}" for legs in by_tree.values())
        raise UsageError(f"{wanted[0].job_id} and the others are of several tasks", Commands(*ways))
    tree = branches.of_tree(service, wanted[0].job_id, typed=order, fresh=True)
    legs = [_mergeable(tree, job) for job in wanted]
    pending = [leg for leg in legs if leg.state is BranchState.UNMERGED]
    for leg in pending:
        refuse_foreign(service, tree, leg, "; nothing was merged")
    if not anyway:
        against = [leg for leg in pending if leg.objection]
        _refuse_objected(against, jobs.tree(service, tree.root_job_id).task, job_ids)
    if mine:
        skipped = (leg for leg in tree.legs if of_root and leg.merge and leg not in pending)
        mine.refuse_missing(tree.root_job_id, [merge_offer.without_approval(leg, order) for leg in skipped])
    done = _merge(service, tree, pending, [_contribution(service, leg) for leg in pending])
    _tell(service, tree, legs if done else (), pending, actor)
    return _answer(tree, legs, pending, done)


def _merge_line(service: Service, tree: Branches, actor: str, anyway: bool, mine: OwnBranch | None) -> MergedLegs:
    """Move the task's branch to the line of the tree, or merge the line if the branch has commits of its own."""
    whole, legs = jobs.tree(service, tree.root_job_id), merge_offer.on_line(tree)
    pending = [leg for leg in legs if leg.state is BranchState.UNMERGED]
    merge_offer.refuse_foreign_on(service, tree, "; nothing was merged")
    against = merge_offer.objected_legs(service, whole, pending)
    if not anyway:
        _refuse_objected(against, whole.task, [tree.root_job_id])
    if mine:
        mine.refuse_missing(tree.root_job_id, merge_offer.offer(service, whole, tree).left_out)
    there = tree.head and all(leg.state is BranchState.MERGED for leg in legs)
    all_of_it = Contribution("", tree.root_job_id, tree.line, tree.line, whole.task.title, forwards=True)
    done = _merge(service, tree, pending, [] if there else [all_of_it])
    _tell(service, tree, legs, against, actor)
    head = done.head if done else tree.head or tree.line
    return replace(_answer(tree, legs, pending, done), left_out=tuple(merge_offer.left_out(tree, head)))


def _contribution(service: Service, leg: LegBranch) -> Contribution:
    job = jobs.get(service, leg.job_id)
    return Contribution(
        leg.leg,
        leg.job_id,
        leg.branch,
        leg.head_sha or "",
        job.summary,
        agent=job.agent,
        model=job.model or "",
        task_id=job.task_id,
    )


def _tell(
    service: Service, tree: Branches, legs: Sequence[LegBranch], pending: Sequence[LegBranch], actor: str
) -> None:
    """Record each leg that the task's branch contains after the merge, with the objection that was overruled."""
    for leg in legs:
        objection = leg.objection if leg in pending else ""
        message = f"{actor} merged {leg.branch} into {tree.task_branch}"
        message += f", although {objection}" if objection else ""
        at, into = leg.head_sha or "", tree.task_branch
        event = BranchEvent(
            actor=actor, branch=leg.branch, head_sha=at, task_branch=into, merged=True, anyway=objection
        )
        branch_rows.record(service.store, BranchEventKind.MERGED, leg.job_id, event, message)


def _answer(tree: Branches, legs: Sequence[LegBranch], pending: Sequence[LegBranch], done: Merged | None) -> MergedLegs:
    fresh = {leg.job_id for leg in pending} if done and done.fresh else set()
    return MergedLegs(
        root_job_id=tree.root_job_id,
        repo=tree.repo,
        task_branch=tree.task_branch,
        head=done.head if done else tree.head or "",
        path=tree.path,
        default=tree.default,
        merged=tuple(leg.job_id for leg in legs if leg.job_id in fresh),
        already=tuple(leg.job_id for leg in legs if leg.job_id not in fresh),
    )


def _ready(service: Service, job_id: str, anyway: bool) -> list[str]:
    """Return the job's id; for a root without a branch, the ids of its tree's mergeable legs in order of dispatch."""
    job = jobs.get(service, job_id)
    if job.action is Action.IMPLEMENT or job.parent_job_id is not None:
        return [job_id]
    legs = branches.of_tree(service, job_id).legs
    left = [leg for leg in legs if leg.merge]
    ready = left if anyway else [leg for leg in left if not leg.objection]
    chosen = ready or [leg for leg in legs if leg.state is BranchState.MERGED] or left
    if not chosen:
        raise RefusedError(f"no part of {job_id} can be merged", f"service job branches {job_id}")
    return [leg.job_id for leg in chosen]


def _refuse_objected(against: Sequence[LegBranch], task: TaskRecord, job_ids: Sequence[str]) -> None:
    if not against:
        return
    objections = "; ".join(f"part {leg.leg} ({leg.job_id}) is not approved: {leg.objection}" for leg in against)
    ways = [
        *(f"service job show {each}" for each in dict.fromkeys(leg.objector for leg in against)),
        *([task.next] if task.waits_for is WaitsFor.RETRY else []),
        f"service job merge {' '.join(job_ids)} --anyway",
    ]
    raise RefusedError(f"{objections}; nothing was merged", Commands(*ways))


def _merge(service: Service, tree: Branches, legs: Sequence[LegBranch], parts: Sequence[Contribution]) -> Merged | None:
    """Merge the legs. Repeat this even if all are merged already, so that a lost record is written again."""
    if tree.head is None and not parts:
        return None
    path = Path(tree.path)
    at_hub = hub_work.branch_of(service, repo_rows.must_get(service.store, tree.repo), tree.task_branch)
    try:
        start = tree.head or tree.base or next((leg.base_sha or leg.head_sha for leg in legs), None) or ""
        return merge_all(path, tree.task_branch, start, parts, at_hub)
    except TaskBranchConflict as conflict:
        raise _explain(path, tree, legs, conflict) from None
    except RefusedError as refused:
        if refused.hint or not (where := git_branches.checkout_of(path, tree.task_branch)):
            raise
        at = shlex.quote(str(where))
        by_hand = (f"git -C {at} merge --no-ff --no-edit {part.branch}" for part in parts)
        raise RefusedError(refused.message, Commands(*by_hand)) from None


def _explain(path: Path, tree: Branches, legs: Sequence[LegBranch], conflict: TaskBranchConflict) -> TaskBranchConflict:
    """Build the error that names the conflicting legs and the commands that solve the conflict."""
    clashing = next((leg for leg in legs if leg.job_id == conflict.clashing.job_id), None)
    if clashing is None or conflict.clashing.forwards:
        return _against_line(tree, conflict)
    before = [each.job_id for each in conflict.before]
    there = [leg for leg in tree.legs if leg.state is BranchState.MERGED or leg.job_id in before]
    touching = [leg for leg in there if branches.touched_files(path, leg) & set(conflict.files)]
    others = " and ".join(f"part {leg.leg} ({leg.job_id})" for leg in touching) or f"what is on {tree.task_branch}"
    conflict.message = (
        f"part {clashing.leg} ({clashing.job_id}) conflicts with {others} in {', '.join(conflict.files)};"
        " nothing was changed"
    )
    insists = " --anyway" if any(leg.objection for leg in legs if leg.job_id in before) else ""
    first = [f"service job merge {' '.join(before)}{insists}"] if before else []
    conflict.hint = Commands(*first, *branches.by_hand(tree.path, tree.task_branch, clashing.branch))
    return conflict


def _against_line(tree: Branches, conflict: TaskBranchConflict) -> TaskBranchConflict:
    conflict.message = (
        f"the work of {tree.root_job_id} conflicts with what is on {tree.task_branch} in {', '.join(conflict.files)};"
        " nothing was changed"
    )
    resolve = f"service job resolve {tree.root_job_id}"
    conflict.hint = Commands(resolve, *branches.by_hand(tree.path, tree.task_branch, tree.line))
    return conflict


def writer(service: Service, job_id: str) -> JobRecord:
    """Return a job whose action lets it have a branch; raise for any other."""
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
                f"{job.job_id} {job.state.in_a_sentence}{why}; only work that succeeded is merged",
                branches.again(job),
            )
    if leg.state is BranchState.EMPTY:
        raise RefusedError(f"{job.job_id} changed nothing: there is nothing to merge", f"service job show {job.job_id}")
    if leg.state in {BranchState.GONE, BranchState.DROPPED}:
        raise _lost_branch_error(tree, leg)
    return leg


def _lost_branch_error(tree: Branches, leg: LegBranch) -> NotFoundError:
    """Build the error for a lost branch; if its commits still exist, the hint restores it."""
    how = "was dropped" if leg.state is BranchState.DROPPED else "is gone"
    message = f"the branch {leg.branch} of {leg.job_id} {how}"
    if leg.ahead is None:
        return NotFoundError(f"{message}, and so are its commits", f"service job branches {tree.root_job_id}")
    return NotFoundError(
        f"{message}; its commits are still there", branches.restore(tree.path, leg.branch, leg.head_sha or "")
    )
