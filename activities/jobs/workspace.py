"""Workspaces of jobs: on a branch if they may write, else in a throwaway worktree (rulings I1 to I3, N3)."""

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

from activities.git import git_branches, hub
from activities.git.command import all_printable
from activities.git.library import keep_open
from activities.git.merges import begun_merge
from activities.git.merges.into_work_folder import MergeConflict, merge
from activities.git.merges.task_line import LeftOutBranch, TaskLine, draw
from activities.git.registered_repository import pack_references, readable_folders
from activities.git.work_folder import service_git_dir, worktrees
from activities.git.work_folder.commit import commit_all, trailers_of
from activities.git.work_folder.work_in_progress import lay_out, mark_pushed
from activities.git.work_folder.worktree_changes import CapturedDiff, capture_diff, look, touched_files
from activities.git.work_folder.worktrees import Worktree
from activities.host import checkouts
from activities.host.attempt import with_way_out
from activities.host.context import Context
from activities.host.helper_process import FILL_SECONDS, LOOK_SECONDS, TooMuchError, apart, worth_keeping
from activities.host.slots import out_of_turn
from activities.jobs import snapshots
from activities.jobs.dependencies import heads, parts_of, revisions_to_merge
from activities.runs.supervised_run import Claim
from activities.stations.hook import reach
from activities.store import attempt_rows, branch_rows, tree_rows
from activities.store.attempt_rows import AttemptRow
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Repo
from workflows.contract.models import Action, ServiceResult
from workflows.model.errors import RefusedError, ServiceError
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.jobs import JobRun
from workflows.model.states import Continuation, JobState
from workflows.model.workers import UNRESOLVED
from workflows.policy.ci_files import is_ci_file
from workflows.policy.decisions import state_of
from workflows.policy.observation import Observation, Touched, observe
from workflows.policy.reference_names import ref_part

MOST_PRODUCTS = 10
"""Most build products that are named."""


@dataclass(frozen=True)
class Workspace:
    """The worktree of a run, as recorded."""

    repo: Path
    worktree: Worktree
    lent: tuple[Path, ...] = ()
    """Folders of objects that the worktree's repository reads; the box permits only reading them."""
    line: TaskLine | None = None
    """The line from which the job begins; None after its agent has begun."""
    merging: tuple[LeftOutBranch, ...] = ()
    """The branches whose merge was begun in the work folder (ruling O6)."""
    snapshot: tuple[str, ...] | None = None
    """Remarks on files that are missing in the snapshot from which the work folder was filled; None without a snapshot
    (ruling Q6).
    """
    products: bool = False
    """True if build products are committed like other files (`[git].build_products`)."""
    through: hub.Hub | None = None
    """The hub to which the job's work is pushed; None for a repository without a remote."""


@dataclass(frozen=True)
class Evidence:
    """The work that a job left in its worktree."""

    touched: Touched | None
    diff: CapturedDiff | None = None
    """Discarded changes of a reader."""
    observation: Observation | None = None
    head_sha: str | None = None
    odd: tuple[str, ...] = ()
    """Sentences for people about entries of the work folder that were left out, and other remarks."""
    joined: tuple[str, ...] = ()
    """Commits of the repository that the job merged or built on, except those it began from (ruling O1)."""
    lines: tuple[str, ...] = ()
    """Commits in `joined` that are merges of the service, made for branches such as `leg/<id>` (ruling O4)."""
    problem: str = ""
    """Reason that the work could not be committed on its branch; the worktree is then kept."""


@keep_open()
def prepare(context: Context, run: JobRun, row: AttemptRow, run_dir: Path, folder: Path | None = None) -> Workspace:
    """Return the run's worktree; make it if it is missing, after recording it. Until the agent begins, repair what a
    crash left.

    A run that resumes a session gets the session's `folder`.
    """
    registered = repo_rows.must_get(context.store, run.repo)
    with out_of_turn():  # its mirror may have to be made
        repo = checkouts.path_of(context, registered)
    through = checkouts.hub_of(context, registered)
    if through is not None:
        through.check_allowed()
    path = folder or worktrees.worktree_path(context.home.worktrees, _name(run))
    branch = branch_name(run)
    begun = Claim.read(run_dir) or (branch and Claim.read(Path(row.run_dir)))
    # A writer's worktree also counts as begun by an earlier try, whose work is kept. A reader's later try begins anew,
    # and so does one whose folder is missing: it wrote nothing.
    if row.base_sha and begun and (branch or path.exists()):
        _record(context, run, row, path, row.base_sha)
        worktree = worktrees.find(path) or Worktree(path, row.base_sha, branch)
        workspace = Workspace(repo, worktree, readable_folders(repo))
    else:
        workspace = _make(context, run, row, path, repo, registered, through)
    reach("folder made", run.job_id)
    return replace(workspace, through=through, products=context.settings.git.build_products)


def _make(
    context: Context, run: JobRun, row: AttemptRow, path: Path, repo: Path, registered: Repo, through: hub.Hub | None
) -> Workspace:
    branch = branch_name(run)
    _fetch(context, run, registered)
    line = _line(context, repo, run, registered)
    moved = through if run.moved_from else None
    snapshot, its_base = (snapshots.adopt(repo, moved, run, branch) if moved and branch else None) or (None, None)
    base = row.base_sha or its_base or line.commit
    _record(context, run, row, path, base)
    worktree = _add(repo, path, branch, base, line.names)
    if run.shared_worktree:
        worktree = worktrees.mark_base(path, line.names)
    elif not run.own_branch:
        worktree = replace(worktree, base=base)
    if snapshot is None and (run.shared_worktree or run.own_branch):
        worktree, line = _onto(worktree, line)
    if run.continuation is not Continuation.NONE:
        _tell_left_out(context, run, line)
    wanted = revisions_to_merge(context, repo, run)
    given = [worktrees.commit_of(repo, each) for each in wanted]  # before they are merged: never more than it sees
    if wanted and snapshot is None:
        worktree = apart(FILL_SECONDS, merge, worktree, wanted)
    line = _drop_settled_conflicts(repo, line, given)
    merging = _begin_merge(run, worktree, line, fill=snapshot is None)
    left_out = tuple(each for each in line.left_out if each not in merging)
    merged = Workspace(repo, worktree, readable_folders(repo), replace(line, left_out=left_out), merging)
    if run.branch_deps:
        attempt_rows.give(context.store, row, given)
    if not snapshot:
        return merged
    mark_pushed(worktree, snapshot)
    return replace(merged, snapshot=apart(FILL_SECONDS, lay_out, worktree, snapshot))


def _begin_merge(run: JobRun, worktree: Worktree, line: TaskLine, *, fill: bool) -> tuple[LeftOutBranch, ...]:
    """Write the conflicting merge for the job to resolve into its work folder, and return the merged branches; raise if
    a leg left no branch to merge (ruling O6).
    """
    if not run.merges:
        return ()
    if unknown := [leg for leg in run.merges if leg not in line.legs]:
        there = ", ".join(line.legs) or "none"
        raise RefusedError(
            f"part {unknown[0]} left no work that could be merged here; there is: {there}",
            f"service job branches {run.root_job_id}",
        )
    merging = tuple(part for part in line.left_out if part.leg in run.merges and part.files)
    apart(FILL_SECONDS, begun_merge.begin, worktree, merging, fill=fill)
    return merging


def _fetch(context: Context, run: JobRun, repo: Repo) -> None:
    """Fetch the commits that the job may begin from: those of its tree, and of trees that it builds on (ruling Q3)."""
    if not repo.remote:
        return
    works = (*run.line, *run.deps)
    names = (run.job_id, task_branch(run), run.own_branch or "", *run.branch_deps, *(each.branch for each in works))
    commits = [_resolved_base(context, run), *(each.head for each in works), *_parents_base(context, run)]
    commits += [head for branch, head in heads(context, run).items() if head and branch in run.branch_deps]
    with out_of_turn():
        checkouts.fetch(context, repo, names, [each for each in commits if each not in ("", UNRESOLVED)])


def _record(context: Context, run: JobRun, row: AttemptRow, path: Path, base: str) -> None:
    branch, alone = branch_name(run), not run.branch_deps
    attempt_rows.record_worktree(context.store, row, worktree=str(path), branch=branch, base_sha=base, alone=alone)
    reach("folder recorded", run.job_id)


def _onto(worktree: Worktree, line: TaskLine) -> tuple[Worktree, TaskLine]:
    """Merge the line into a branch that has earlier commits of the job; on a conflict, the job begins from the branch
    alone.
    """
    try:
        return apart(FILL_SECONDS, merge, worktree, [line.commit]), line
    except MergeConflict as conflict:
        own = LeftOutBranch("", worktree.branch or "", worktree.base, ("the line",), conflict.files)
        return worktree, replace(line, left_out=(*line.left_out, own))


def _add(repo: Path, path: Path, branch: str | None, base: str, names: dict[str, str]) -> Worktree:
    if branch:
        return apart(FILL_SECONDS, worktrees.add_branch, repo, path, branch, base, names)
    return apart(FILL_SECONDS, worktrees.add_detached, repo, path, base, names)


def branch_name(run: JobRun) -> str | None:
    """Return `service/<job id>-<leg id>` (ruling I1); later attempts get separate branches.

    A job that continues earlier work of its chain uses that work's branch (ruling O5).
    """
    if run.shared_worktree:
        # `a` and `a/b` are two worktrees, but git does not allow a branch below another.
        return f"service/{run.root_job_id}-shared-{ref_part(run.shared_worktree.replace('/', '+'))}"
    if run.assignment.action is not Action.IMPLEMENT:
        return None
    if run.own_branch:
        return run.own_branch
    leg = f"-{ref_part(run.delegation_id)}" if run.delegation_id else ""
    attempt = f"-attempt{run.attempt}" if run.attempt > 1 else ""
    return f"service/{run.job_id}{leg}{attempt}"


def task_branch(run: JobRun) -> str:
    """Return the name of the branch that collects a task's merged work; it exists once something was merged (ruling
    I5).
    """
    return run.assignment.task_branch or f"service/{run.task_id}"


def collect(workspace: Workspace, run: JobRun, result: ServiceResult | None, model: str | None = None) -> Evidence:
    """Observe, then commit the agent's work (ruling I4). If that takes too long, keep the worktree.

    The commit names the model that the program reported, else the model that the job asked for.
    """
    try:
        return apart(LOOK_SECONDS, collect_here, workspace, run, result, model)
    except TooMuchError as fault:
        return _unread(run, result, fault)


def _unread(run: JobRun, result: ServiceResult | None, fault: ServiceError | OSError) -> Evidence:
    """Return the evidence of an unreadable work folder. The folder of a job that may not write is deleted nevertheless,
    with a remark.
    """
    problem = f"the worktree cannot be read: {in_words(fault)}"
    observed = observe(result.changes_made, None) if result else None
    odd = () if run.assignment.action is Action.IMPLEMENT else (problem,)
    return Evidence(None, observation=observed, odd=odd, problem=problem)


@keep_open()
def collect_here(workspace: Workspace, run: JobRun, result: ServiceResult | None, model: str | None) -> Evidence:
    """Observe and commit the agent's work, in this process; `collect` calls this in a helper."""
    try:
        worktrees.repair(workspace.repo, workspace.worktree.path)
        seen = look(workspace.worktree, products=workspace.products)
    except (ServiceError, OSError) as error:
        return _unread(run, result, error)
    touched, odd = touched_files(workspace.worktree, seen=seen), tuple(each.sentence for each in seen.odd)
    if run.assignment.action is not Action.IMPLEMENT:
        refused = (f"what was committed there: {seen.refused.message}",) if seen.refused else ()
        diff = capture_diff(workspace.worktree, seen=seen) if touched.files else None
        return Evidence(touched, diff, odd=odd + refused)
    if seen.products:
        named = ", ".join(all_printable(seen.products[:MOST_PRODUCTS]))
        odd = (*odd, f"build products: {named} (they are committed with [git].build_products = true)")
    observed = observe(result.changes_made, touched) if result else None
    through, ci_files = workspace.through, [name for name in touched.files if is_ci_file(name)]
    if through and through.has_branches and ci_files:
        problem = (
            f"{', '.join(ci_files)}: CI files are not pushed to branches of {through.safe_url}, where they would run; "
            "[git].hub names a repository where they may be pushed to"
        )
        return Evidence(touched, observation=observed, odd=odd, problem=problem)
    if not seen.refused and (left := begun_merge.merge_faults(workspace.worktree, seen)):
        return _unfinished_merge(workspace, run, result, Evidence(touched, observation=observed, odd=odd), left)
    try:
        worker = run.assignment.worker
        summary = result.summary if result else f"{run.assignment.action} for {run.job_id} by {worker.name}"
        used = model or run.assignment.model or ""
        trailers = trailers_of(run.job_id, agent=worker.name, model=used, task_id=run.task_id)
        head = commit_all(workspace.worktree, run.job_id, summary, seen, trailers)
        if run.own_branch:  # the commit represents the chain's own work, even without changes by this job
            head = head or workspace.worktree.base
        joined = service_git_dir.read_built_on(workspace.worktree.path) or ()
        lines = tuple(each for each in joined if each in workspace.worktree.names.values())
        return Evidence(touched, observation=observed, head_sha=head, odd=odd, joined=joined, lines=lines)
    except (ServiceError, OSError) as error:
        problem = f"the work could not be committed: {in_words(error)}"
        return Evidence(touched, observation=observed, odd=odd, problem=problem)


def _unfinished_merge(
    workspace: Workspace, run: JobRun, result: ServiceResult | None, evidence: Evidence, left: tuple[str, ...]
) -> Evidence:
    """Return the evidence of a job that left its merge unfinished: nothing is committed (ruling O6).

    A job that reports this itself ends with its own result. The next attempt begins the merge again.
    """
    why = f"the merge is not finished: {'; '.join(left)}"
    if result and state_of(result.decision) is JobState.SUCCEEDED:
        return replace(evidence, problem=why)
    head = workspace.worktree.base if run.own_branch else None
    return replace(evidence, head_sha=head, odd=(*evidence.odd, why))


def publish(context: Context, run: JobRun, workspace: Workspace, evidence: Evidence) -> Evidence:
    """Push the job's commits to the hub before its end is recorded (ruling Q3), so that jobs on any host can build on
    them.

    A job that made no commits pushes the line that it began from, if no other host has that.
    """
    through, branch = workspace.through, workspace.worktree.branch
    if through is None:
        return evidence
    row = attempt_rows.get(context.store, run.job_id, run.attempt)
    commit = evidence.head_sha or (row.base_sha if row else None)
    if commit is None:
        return evidence
    repo = repo_rows.must_get(context.store, run.repo)
    with out_of_turn():
        if not (evidence.head_sha and branch):
            line = f"{hub.LINES}{run.job_id}"
            checkouts.keep(context, repo, commit, line, f"{line}{hub.AT_HOST}{run.attempt}")
            return evidence
        kept = hub.keep(workspace.repo, through, commit, branch, f"{branch}{hub.AT_HOST}{ref_part(context.host)}")
    if kept == branch:
        return evidence
    remark = f"{branch} has other commits at {through.safe_url}: this work is kept there as {through.ref(kept)}"
    return replace(evidence, odd=(*evidence.odd, remark))


def in_words(error: ServiceError | OSError) -> str:
    """Return an error with its command as part of a sentence."""
    return with_way_out(error.message, error.hint) if isinstance(error, ServiceError) else str(error)


def dispose(workspace: Workspace, run: JobRun, evidence: Evidence) -> None:
    """Remove the worktree, unless the commit of an implement job failed. Its branch stays until people merge or drop
    it; once there are many, they are packed.
    """
    if run.assignment.action is not Action.IMPLEMENT or not evidence.problem:
        worktrees.dispose(workspace.repo, workspace.worktree.path, later=True)
    pack_references(workspace.repo)


def rest(workspace: Workspace) -> None:
    """Remove the worktree of a deferred job that may not write: its changes would be discarded anyway. Keep that of a
    job that may write.
    """
    if workspace.worktree.branch is None:
        worktrees.dispose(workspace.repo, workspace.worktree.path, later=True)


def abandon(context: Context, run: JobRun, row: AttemptRow) -> None:
    """Remove the worktree of a run that never began, ignoring errors."""
    if Claim.read(Path(row.run_dir)) is None:
        with contextlib.suppress(ServiceError, OSError):
            placed = attempt_rows.get(context.store, run.job_id, run.attempt) or row
            own = worktrees.worktree_path(context.home.worktrees, _name(run))
            path = own.with_name(Path(placed.worktree).name) if placed.worktree else own
            worktrees.dispose(checkouts.path_by_name(context, run.repo), path)


def settle(context: Context, run: JobRun, row: AttemptRow) -> None:
    """Remove the worktree of a run that was killed after recording its end. Never remove work that exists nowhere
    else.
    """
    if row.worktree is None or run.shared_worktree or not Path(row.worktree).exists():
        return
    path = Path(row.worktree)
    with contextlib.suppress(ServiceError, OSError):
        repo = checkouts.path_by_name(context, run.repo)
        worktrees.dispose(repo, path, unless=lambda: worth_keeping(repo, path) if row.branch else "")


def _name(run: JobRun) -> str:
    if run.shared_worktree:
        return worktrees.worktree_name(run.repo, f"{run.root_job_id}-shared/{run.shared_worktree}")
    return worktrees.worktree_name(run.repo, f"{run.job_id}-{run.attempt}")


def _line(context: Context, repo: Path, run: JobRun, registered: Repo) -> TaskLine:
    """Draw the line that the job begins from, with the names for its repository (rulings O2 to O4)."""
    base, merged = (
        _base(context, repo, run, registered),
        None if run.at_base else git_branches.tip(repo, task_branch(run)),
    )
    start = _start(context, run, merged) if merged else base
    parts, given = parts_of(context, repo, run, run.line), parts_of(context, repo, run, run.deps)
    line = apart(FILL_SECONDS, draw, repo, base, start, parts, given) if parts or given else TaskLine(base, start)
    return replace(line, people=bool(merged) and git_branches.contains(repo, start, merged or start))


def _base(context: Context, repo: Path, run: JobRun, registered: Repo) -> str:
    """Return the tree's base. If it could not be resolved when the tree was started, the tree's first job resolves it
    (ruling O1).
    """
    base = _resolved_base(context, run)
    if base == UNRESOLVED:
        with out_of_turn():
            base = tree_rows.resolve_base(context.store, run.root_job_id, checkouts.newest(context, registered))
    return worktrees.starting_commit(repo, base, context.host, f"service job retry {run.job_id}")


def _resolved_base(context: Context, run: JobRun) -> str:
    base = run.assignment.base
    if base != UNRESOLVED:
        return base
    known, _ = tree_rows.base_of(context.store, run.root_job_id)
    return known or base


def _start(context: Context, run: JobRun, merged: str) -> str:
    """Return the commit that the line begins with: people's commits on the task branch from before the job's
    generation.

    A leg begins where its coordinator's job began. A re-run also includes what was merged meanwhile (I5).
    """
    if run.attempt == 1:
        return next(iter(_parents_base(context, run)), merged)
    return merged


def _parents_base(context: Context, run: JobRun) -> list[str]:
    """Return the commit that the job of a leg's coordinator began from; empty if it has not begun."""
    if not run.delegation_id or not run.parent_job_id:
        return []
    return [each.base_sha for each in attempt_rows.of_job(context.store, run.parent_job_id)[-1:] if each.base_sha]


def _drop_settled_conflicts(repo: Path, line: TaskLine, given: list[str]) -> TaskLine:
    """Remove left-out branches that one of the job's dependencies has merged already."""

    def is_merged(part: LeftOutBranch) -> bool:
        return bool(part.files) and any(git_branches.contains(repo, end, part.commit) for end in given)

    return replace(line, left_out=tuple(each for each in line.left_out if not is_merged(each)))


def _tell_left_out(context: Context, run: JobRun, line: TaskLine) -> None:
    """Record an event for each branch left out, once per generation (ruling O3)."""
    for part in line.left_out:
        others = " and ".join(part.against) or "what was there before"
        why = f"it conflicts with {others} in {', '.join(part.files)}" if part.files else "its commits are gone"
        who = f"part {part.leg}" if part.leg else "the lead's own work"
        event = BranchEvent(
            actor=context.host,
            branch=part.branch,
            head_sha=part.commit,
            task_branch=task_branch(run),
            merged=False,
            leg=part.leg,
            against=list(part.against),
            files=list(part.files),
        )
        message = f"{who} ({part.branch}) is not on the line: {why}"
        branch_rows.record(context.store, BranchEventKind.LINE_CONFLICT, run.job_id, event, message)
