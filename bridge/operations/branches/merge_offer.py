"""Which legs a merge of a tree takes, which it leaves out, and why (rulings O1, O6, O7)."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from activities.git import git_branches
from activities.git.command import all_printable, printable
from activities.git.merges.commits import CommitConflict, merged_tree
from activities.git.merges.task_line import LinePart
from activities.store import attempt_rows, tree_rows
from activities.store.attempt_rows import AttemptRow
from bridge.operations.branches import branches
from bridge.operations.branches.branches import Branches, BranchState, LegBranch
from bridge.operations.branches.objections import plans_of
from bridge.operations.jobs import jobs
from bridge.operations.jobs.jobs import Tree
from bridge.operations.service import Service
from workflows.contract.models import Action, SynthesisRule
from workflows.github.effective_jobs import chain_of
from workflows.github.merge_gate_inputs import Plan
from workflows.model.errors import Commands, RefusedError
from workflows.model.states import JobState, TaskState

MOST_NAMED = 5
SHORT, LONGEST_SUBJECT = 7, 72


class ForeignCommitsError(RefusedError):
    """A branch holds commits that belong neither to the base, nor to the tree, nor to the task's branch."""

    code = "foreign_commits"


@dataclass(frozen=True)
class OmittedLeg:
    """A leg that is not in the task's branch, the legs and files it conflicts with, and the commands that solve the
    conflict.
    """

    leg: str
    job_id: str
    branch: str
    against: str
    files: tuple[str, ...]
    commands: tuple[str, ...]
    objection: str = ""
    """The reason why the leg is merged only with `--anyway`."""

    @property
    def says(self) -> str:
        """Return a sentence for people."""
        why = f"conflicts with {self.against} in {', '.join(self.files)}" if self.files else "is not in its task's work"
        why = f"is not approved: {self.objection}" if self.objection else why
        return f"part {self.leg} is missing: it {why}"


def without(parts: Iterable[OmittedLeg]) -> str:
    """Return the options of `service job merge` that leave these parts out of the operator's branch."""
    return "".join(f" --without {shlex.quote(leg)}" for leg in dict.fromkeys(part.leg for part in parts))


def not_in_head(repo: Path, parts: Iterable[OmittedLeg]) -> list[OmittedLeg]:
    """Return the parts that are not in the checked-out branch, or in a mirror not in the default branch."""
    return [part for part in parts if not git_branches.contains(repo, "HEAD", part.branch)]


def without_approval(leg: LegBranch, order: str) -> OmittedLeg:
    """Return the leg as one that is left out because of an objection."""
    return OmittedLeg(leg.leg, leg.job_id, leg.branch, "", (), (f"{order} --anyway",), leg.objection)


@dataclass(frozen=True)
class MergeOffer:
    """The legs that merging a root takes now, those it takes only with `--anyway`, and those it leaves out."""

    fresh: tuple[LegBranch, ...]
    objected: tuple[LegBranch, ...]
    left_out: tuple[OmittedLeg, ...]


def on_line(tree: Branches) -> list[LegBranch]:
    """Return the legs whose commits the tree's line contains."""
    repo = Path(tree.path)
    written = [leg for leg in tree.legs if leg.job_state is JobState.SUCCEEDED and leg.ahead is not None]
    return [leg for leg in written if git_branches.contains(repo, tree.line, leg.head_sha or "")]


def parts_of(service: Service, tree: Branches) -> list[LinePart]:
    """Return the commits that a tree was started with, and those of its legs, in order of dispatch."""
    known = tree_rows.get(service.store, tree.root_job_id)
    given = [LinePart(each.leg, each.job_id, each.branch, each.head) for each in (known.start.line if known else ())]
    legs = [leg for leg in tree.legs if leg.job_state is JobState.SUCCEEDED and leg.ahead is not None]
    legs = [leg for leg in legs if leg.state is not BranchState.DROPPED]
    return given + [LinePart(leg.leg, leg.job_id, leg.branch, leg.head_sha or "") for leg in legs]


def unmerged_legs(tree: Branches) -> list[LegBranch]:
    """Return the last job of each branch whose work succeeded and is not in the task's branch."""
    last_legs = {leg.branch: leg for leg in tree.legs if leg.state is BranchState.UNMERGED}
    return [leg for leg in last_legs.values() if leg.job_state is JobState.SUCCEEDED]


def refuse_foreign_on(service: Service, tree: Branches, but: str) -> None:
    """Raise if any branch of the tree has foreign commits, even if the merge leaves that branch out."""
    for leg in (*on_line(tree), *unmerged_legs(tree)):
        if leg.state is not BranchState.MERGED:
            refuse_foreign(service, tree, leg, but)


def objected_legs(service: Service, tree: Tree, legs: Sequence[LegBranch]) -> list[LegBranch]:
    """Return the legs that are merged only with `--anyway`.

    In a tree that is done only the last check counts: later generations have repaired what earlier checks found.
    """
    against = [leg for leg in legs if leg.objection]
    if not against or tree.task.state is not TaskState.DONE:
        return against
    chain = chain_of(tree.jobs, tree.jobs[0])
    latest = [leg for _, leg in (*chain.latest(), *chain.last_with(_readers(service, tree)))]
    counting = {chain.jobs[-1].job_id, *(leg.job.job_id for leg in latest), *(leg.outcome.job_id for leg in latest)}
    return [leg for leg in against if leg.objector in counting]


def _readers(service: Service, tree: Tree) -> frozenset[str]:
    plans = plans_of(service, tree.jobs, attempt_rows.given_in(service.store, tree.task.root_job_id))
    return frozenset(
        job.job_id
        for job in tree.jobs
        if job.delegation_id
        and (job.action is Action.REVIEW or SynthesisRule.VERIFY in plans.get(job.job_id, Plan()).rules)
    )


def offer(service: Service, whole: Tree, tree: Branches) -> MergeOffer:
    """Return exactly what a merge of the root would take (ruling O7)."""
    behind = bool(tree.line) and not (tree.head and git_branches.contains(Path(tree.path), tree.head, tree.line))
    at = tree.line if behind else tree.head
    out = tuple(each for each in left_out(tree, at) if each.files or tree.line) if at else ()
    gone = {each.job_id for each in out}
    fresh = tuple(leg for leg in tree.legs if leg.merge and leg.job_id not in gone)
    against = objected_legs(service, whole, fresh) if tree.line else [leg for leg in fresh if leg.objection]
    return MergeOffer(fresh, tuple(against), out)


def missing(offered: MergeOffer, tree: Branches) -> list[OmittedLeg]:
    """Return the parts that a merge into the operator's branch would leave out, so that a person must name them."""
    order = f"service job merge {tree.root_job_id} --into-mine"
    objected = () if tree.line else (without_approval(leg, order) for leg in offered.objected)
    return not_in_head(Path(tree.path), (*offered.left_out, *objected))


def next_commands(service: Service, whole: Tree) -> tuple[str, ...]:
    """Return the commands to type after a tree ended successfully: to see its diff and merge it, or to see what
    happened.
    """
    root = whole.task.root_job_id
    if whole.task.state is not TaskState.DONE:
        return ()
    tree = branches.of_tree(service, root)
    offered = offer(service, whole, tree)
    fresh = [leg for leg in offered.fresh if leg not in offered.objected]
    if not fresh:
        return (f"service job tree {root}", f"service job events {root}")
    if len(fresh) > 1:
        return (f"service job diff {root} --tree", f"service job merge {root}")
    return (f"service job diff {fresh[0].job_id}", f"service job merge {fresh[0].job_id}")


def left_out(tree: Branches, head: str) -> Iterator[OmittedLeg]:
    """Yield the succeeded legs that this head lacks, with their conflicts with it and the commands that solve them."""
    repo, seen = Path(tree.path), replace(tree, head=head)
    for leg in unmerged_legs(tree):
        if not leg.exists or git_branches.contains(repo, head, leg.head_sha or ""):
            continue
        merged = merged_tree(repo, head, leg.head_sha or "")
        files = all_printable(merged.files) if isinstance(merged, CommitConflict) else ()
        yield OmittedLeg(leg.leg, leg.job_id, leg.branch, _against(seen, leg, files), files, _ways(seen, leg, files))


def _against(tree: Branches, leg: LegBranch, files: tuple[str, ...]) -> str:
    repo = Path(tree.path)
    there = [each for each in tree.legs if each.branch != leg.branch and each.ahead is not None]
    there = [each for each in there if git_branches.contains(repo, tree.head or "", each.head_sha or "")]
    touching = [each for each in there if branches.touched_files(repo, each) & set(files)]
    return " and ".join(each.leg for each in touching) or f"what is on {tree.task_branch}"


def _ways(tree: Branches, leg: LegBranch, files: tuple[str, ...]) -> tuple[str, ...]:
    if not files:
        return (leg.insisting(f"service job merge {leg.job_id}"),)
    return (
        f"service job resolve {tree.root_job_id}",
        *branches.by_hand(tree.path, tree.task_branch, leg.branch),
        f"service job drop {leg.job_id} --force",
    )


def refuse_foreign(service: Service, tree: Branches, leg: LegBranch, but: str) -> None:
    """Raise, with their names, if a leg's branch has foreign commits. Without a base, no commit is known to be
    foreign.
    """
    commits = _foreign(service, tree, leg.head_sha) if tree.base and leg.head_sha else ()
    if not commits:
        return
    subjects = git_branches.subjects(Path(tree.path), commits[:MOST_NAMED])
    named = ", ".join(f"{each[:SHORT]} {printable(subject[:LONGEST_SUBJECT])}" for each, subject in subjects)
    more = f" and {len(commits) - MOST_NAMED} more" if len(commits) > MOST_NAMED else ""
    holds = "a commit that is" if len(commits) == 1 else f"{len(commits)} commits that are"
    message = f"{leg.branch} of part {leg.leg} ({leg.job_id}) holds {holds} not of this task: {named}{more}{but}"
    raise ForeignCommitsError(message, Commands(*_without(service, tree, leg), *_with(tree, leg)))


def _without(service: Service, tree: Branches, leg: LegBranch) -> list[str]:
    """Return the commands that reset the branch to the job's own commit; none if that commit has foreign ancestors."""
    whole = jobs.tree(service, leg.job_id).jobs  # later jobs may have continued on the branch
    heads = [job.head_sha for job in whole if job.branch == leg.branch and job.head_sha]
    left = heads[-1] if heads else None
    if left is None or left == leg.head_sha or _foreign(service, tree, left):
        return []
    where = git_branches.checkout_of(Path(tree.path), leg.branch)
    first = [f"git -C {shlex.quote(str(where))} checkout --detach"] if where else []
    return [*first, f"git -C {shlex.quote(tree.path)} branch -f {leg.branch} {left}   # leaves them out"]


def _with(tree: Branches, leg: LegBranch) -> list[str]:
    """Return the commands that merge foreign commits into the task's branch, where they count as a person's."""
    repo, work = f"git -C {shlex.quote(tree.path)}", leg.branch if leg.exists else leg.head_sha
    if tree.head is None:
        return [f"{repo} branch {tree.task_branch} {work}   # takes them in"]
    merge = f"merge --no-ff --no-edit {work}   # takes them in"
    if where := git_branches.checkout_of(Path(tree.path), tree.task_branch):
        return [f"git -C {shlex.quote(str(where))} {merge}"]
    place = shlex.quote(f"{tree.path}-{tree.task_branch.removeprefix('service/')}")
    return [
        f"{repo} worktree add {place} {tree.task_branch}",
        f"git -C {place} {merge}",
        f"{repo} worktree remove {place}",
    ]


def _foreign(service: Service, tree: Branches, head: str) -> tuple[str, ...]:
    """Return the commits of a head that are not the base's, the tree's or the task branch's, newest first."""
    rows = attempt_rows.of_tree(service.store, tree.root_job_id)
    start = tree_rows.get(service.store, tree.root_job_id)
    of_run = len(start.start.branch_deps) if start else 0
    given = {commit for row in rows for commit in (row.given or ())[:of_run]}
    given |= {each.head for each in start.start.line} if start else set()
    repo, hidden = Path(tree.path), frozenset({tree.base, *given, *([tree.head] if tree.head else [])})
    own = {commit for row in rows for commit in _own(repo, row, rows)} | _service_merges(repo, rows, hidden)
    return tuple(each for each in _commits_between(repo, head, hidden) if each not in own)


def _service_merges(repo: Path, rows: Sequence[AttemptRow], hidden: frozenset[str]) -> set[str]:
    """Return the merge commits that the service made as bases of later jobs, or for them to merge (rulings O2, O4).

    Such merges are above the commits that a line was made of, even if later work was built on the line.
    """
    heads = {head for row in rows if (head := _head(row)) and head != row.base_sha}
    commits = set[str]()
    lines = {line for row in rows for line in (row.base_sha, *(row.diagnostics or {}).get("lines", ())) if line}
    for line in lines - hidden:
        parts = heads.intersection(_commits_between(repo, line, hidden))
        commits.update(_commits_between(repo, line, hidden | parts))
    return commits


def _own(repo: Path, row: AttemptRow, rows: Sequence[AttemptRow]) -> tuple[str, ...]:
    """Return the commits an attempt added: its own, and the merges made on its branch before it began."""
    head, known = _head(row), row.diagnostics or {}
    if row.ended_at is None and row.branch:
        head = git_branches.tip(repo, row.branch)
    if not head or not row.base_sha:
        return ()
    start = known.get("start_sha", row.base_sha)
    own = _commits_between(repo, head, frozenset({start, row.base_sha, *(row.given or ()), *known.get("joined", ())}))
    there = [each for each in rows if each.branch == row.branch]
    merged = frozenset(commit for each in there for commit in (each.base_sha, *(each.given or ())) if commit)
    return (*own, *_merges_on_top(repo, start, merged))


def _head(row: AttemptRow) -> str | None:
    return (row.outcome or {}).get("head_sha")


def _commits_between(repo: Path, head: str, hidden: frozenset[str]) -> tuple[str, ...]:
    """Return the commits of a head that are not reachable from the hidden commits. Cached; empty while the head is
    missing.
    """
    try:
        return _walk(repo, head, hidden)
    except LookupError:
        return ()


@lru_cache(maxsize=1024)
def _walk(repo: Path, head: str, hidden: frozenset[str]) -> tuple[str, ...]:
    commits = git_branches.commits_beyond(repo, head, hidden)
    if not commits and git_branches.commit(repo, head) is None:
        raise LookupError(head)  # it may be fetched later, so nothing is cached
    return commits


@lru_cache(maxsize=1024)
def _merges_on_top(repo: Path, head: str, merged: frozenset[str]) -> tuple[str, ...]:
    return git_branches.merges_on_top(repo, head, merged)
