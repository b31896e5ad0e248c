"""The merge gate of a tree: collects facts from store and repository for the rules in `workflows/github/merge_gate`
(ruling L10).
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from activities.git import git_branches, pull_requests
from activities.git.reviewed_commits import holds, saw_all, unseen
from activities.store import attempt_rows, branch_rows, event_rows, round_rows
from activities.store.attempt_rows import Given
from bridge.operations.branches import branches, merge_offer
from bridge.operations.branches.branches import Branches, BranchState, LegBranch
from bridge.operations.branches.merge_offer import ForeignCommitsError, refuse_foreign
from bridge.operations.branches.objections import plans_of
from bridge.operations.jobs import jobs
from bridge.operations.jobs.jobs import Tree
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.github.effective_jobs import chain_of
from workflows.github.merge_gate import GateVerdict, judge
from workflows.github.merge_gate_inputs import GateInputs, Head, JobFacts, LaterReview, Look, WorkState
from workflows.model.errors import Commands, ServiceError
from workflows.model.event_kinds import BranchEventKind, EventKind
from workflows.model.rounds import RoundEnd
from workflows.model.rows import JobRecord
from workflows.model.states import Continuation, JobState, TaskState
from workflows.policy import binding_words
from workflows.policy.batch_verdict import APPROVING

SHORT = 7


def of_tree(
    service: Service,
    job_id: str,
    *,
    pull_request: int | None = None,
    fetch: bool = True,
    token: str | None = None,
    tree: Branches | None = None,
    at_line: bool = False,
) -> GateVerdict:
    """Judge whether the work of a job's tree is ready: its task branch, or the head of a pull request.

    A pull request's head is fetched if `fetch` is set, else the last fetched one is used. `tree` passes branches that
    were read already. `at_line` judges the tree's line even if the task has a branch.
    """
    whole = jobs.tree(service, job_id)
    root = whole.task.root_job_id
    rounds = tuple(each for each in round_rows.of_tree(service.store, root) if each.end in {None, RoundEnd.CONTINUED})
    if whole.task.state is not TaskState.DONE:
        return judge(GateInputs(whole.task, whole.jobs, Head(f"service/{whole.task.task_id}"), rounds))
    command = f"service job gate {root}"
    tree = tree or branches.of_tree(service, root, typed=f"{command} --pr {pull_request}" if pull_request else command)
    if pull_request:
        head = _head_of_pull(service, whole, pull_request, token if fetch else None, fetch)
    else:
        bound = whole.jobs[0].pull_request
        head = _without_foreign(service, tree, _head(replace(tree, head=None) if at_line else tree, bound))
    given = attempt_rows.given_in(service.store, root)
    seen = GateInputs(
        whole.task,
        whole.jobs,
        head,
        rounds,
        finalized=_finalize_reason(service, whole),
        plans=plans_of(service, whole.jobs, given),
    )
    if head.sha is None:
        return judge(seen)
    facts = _facts(whole, tree, head, given, pull_request)
    return judge(replace(seen, facts=facts, later=_later(service, root, Path(tree.path), head)))


def seen_by(service: Service, tree: Tree, job_id: str) -> tuple[str, ...]:
    """Return the commits that a job started from, and its own; empty if they are unknown."""
    given = attempt_rows.given_in(service.store, tree.task.root_job_id).get(job_id)
    job = next(each for each in tree.jobs if each.job_id == job_id)
    return _known_commits(job, given) if given else ()


def _known_commits(job: JobRecord, given: Given) -> tuple[str, ...]:
    if given.base_sha is None or given.given is None:
        return ()
    own = (job.head_sha,) if job.action is Action.IMPLEMENT and job.head_sha else ()
    return tuple(dict.fromkeys((given.base_sha, *given.given, *own)))


def _later(service: Service, root: str, repo: Path, head: Head) -> LaterReview | None:
    """Return the last follow-up review of commits that the tree's own reviews have not seen, with its verdict."""
    events = branch_rows.events_of(service.store, root)
    reviews = [event for kind, _, event in events if kind is BranchEventKind.REVIEW_ASKED]
    if not reviews:
        return None
    asked = reviews[-1]
    tree = jobs.tree(service, asked.review)
    given = attempt_rows.given_in(service.store, asked.review).get(asked.review)
    facts = _look(JobFacts(), repo, tree.jobs[0], head, given, None)
    last = chain_of(tree.jobs, tree.jobs[0]).jobs[-1]
    return LaterReview(last, tree.task.state.has_ended, asked.head_sha, facts)


def _head(tree: Branches, bound: int | None) -> Head:
    """Choose the head to judge: the task's branch; before any merge the tree's line, else the tree's only branch.

    `bound` is the pull request that the tree belongs to.
    """
    root = tree.root_job_id
    if tree.problem or tree.stale:
        why = f"the repository cannot be read: {tree.problem or tree.stale}"
        return Head(tree.task_branch, None, why, tree.way_on, hidden=True)
    if tree.head:
        return Head(tree.task_branch, tree.head)
    if tree.line:
        return Head("the task's work", tree.line)
    left = [leg for leg in tree.legs if leg.state is BranchState.UNMERGED and leg.job_state is JobState.SUCCEEDED]
    if len(left) == 1:
        return Head(left[0].branch, left[0].head_sha)
    if left:
        welcome = " ".join(leg.job_id for leg in left if not leg.objection)
        command = f"service job merge {welcome}" if welcome else f"service job branches {root}"
        return Head(tree.task_branch, None, f"nothing is merged into {tree.task_branch} yet", command)
    if any(leg.state is BranchState.MERGED for leg in tree.legs):
        return Head(tree.task_branch, None, f"the branch {tree.task_branch} is gone", f"service job branches {root}")
    wrote = "there is nothing to merge: no job of the task left a branch"
    asks = "" if bound else "; for a pull request it looked at, say which"
    return Head(tree.task_branch, None, f"{wrote}{asks}", f"service job gate {root} --pr {bound or 'N'}")


def _without_foreign(service: Service, tree: Branches, head: Head) -> Head:
    """Add an objection to a head with foreign commits (ruling O1). On the task's branch none are foreign: people commit
    there.
    """
    try:
        if head.sha and head.sha == tree.line:
            merge_offer.refuse_foreign_on(service, tree, "")
        for leg in tree.legs:
            if head.sha and leg.branch == head.name:
                refuse_foreign(service, tree, leg, "")
    except ForeignCommitsError as foreign:
        hint = foreign.hint
        first = hint.commands[0] if isinstance(hint, Commands) else hint
        return replace(head, foreign=foreign.message, next=first)
    return head


def _head_of_pull(service: Service, tree: Tree, number: int, token: str | None, fetch: bool) -> Head:
    """Return the head of a pull request, fetched now or before."""
    name, again = f"pull request {number}", f"service job gate {tree.task.root_job_id} --pr {number}"
    try:
        checkout = branches.checkout(service, tree.task.repo, again)
        repo = Path(checkout.path)
        binding_words.check_github(checkout.name, checkout.path, checkout.github)
        if fetch:
            source = pull_requests.Source(repo, checkout.github, service.settings.github.web)
            return Head(name, pull_requests.heads(source, (number,), token)[number])
        known = git_branches.commit(repo, pull_requests.ref_of(number))
    except ServiceError as error:
        return Head(name, None, f"the head of {name} cannot be seen: {error.message}", error.hint or again, hidden=True)
    return (
        Head(name, known) if known else Head(name, None, f"the head of {name} is not fetched yet", again, hidden=True)
    )


def _finalize_reason(service: Service, tree: Tree) -> str:
    """Return why a tree was finalized early, from the event that records it; empty if it was not."""
    last = next((job for job in tree.jobs if job.continuation is Continuation.FINALIZE), None)
    if last is None:
        return ""
    events = event_rows.of_tree(service.store, tree.task.root_job_id, job_id=last.job_id)
    asked = next((each for each in events if each.kind == EventKind.DELEGATION_FINALIZE_ENQUEUED), None)
    return f"{asked.data.get('reason')} ({asked.data.get('cause')})" if asked else ""


def _facts(
    whole: Tree, tree: Branches, head: Head, given: Mapping[str, Given], pull_request: int | None
) -> dict[str, JobFacts]:
    """Collect facts for the gate; run git only for jobs whose commits matter: those with work, and approvers."""
    facts = {leg.job_id: _work(tree, leg, head) for leg in tree.legs if leg.job_state is JobState.SUCCEEDED}
    for job in whole.jobs:
        if job.state is JobState.SUCCEEDED and job.decision in APPROVING:
            so_far = facts.get(job.job_id, JobFacts())
            facts[job.job_id] = _look(so_far, Path(tree.path), job, head, given.get(job.job_id), pull_request)
    return facts


def _work(tree: Branches, leg: LegBranch, head: Head) -> JobFacts:
    known = leg.state in {BranchState.MERGED, BranchState.UNMERGED, BranchState.DROPPED, BranchState.GONE}
    if not known or leg.head_sha is None:
        return JobFacts()
    if leg.ahead is not None and holds(Path(tree.path), head.sha or "", leg.head_sha):
        return JobFacts(WorkState.MERGED)
    match leg.state:
        case BranchState.DROPPED:
            return JobFacts(WorkState.DROPPED)
        case BranchState.GONE:
            return JobFacts(WorkState.GONE)
        case _:
            out = (part for part in merge_offer.left_out(tree, head.sha or "") if part.job_id == leg.job_id)
            conflict = next((part.says for part in out if part.files), "")
            return JobFacts(WorkState.UNMERGED, _merging(tree, leg), conflict=conflict)


def _merging(tree: Branches, leg: LegBranch) -> str:
    root = tree.root_job_id
    if not tree.line:
        return leg.merge or f"service job publish {root}"
    if git_branches.contains(Path(tree.path), tree.line, leg.head_sha or ""):
        return leg.insisting(f"service job merge {root}")
    return f"service job resolve {root}"


def _look(
    facts: JobFacts, repo: Path, job: JobRecord, head: Head, given: Given | None, pull_request: int | None
) -> JobFacts:
    commits = _known_commits(job, given) if given else ()
    if not commits:
        return replace(facts, problem="its run tells no commits")
    began_there = pull_request is not None and job.pull_request == pull_request  # at its head then
    facts = replace(facts, look_again=_again(job, pull_request) if pull_request else "")
    try:
        look = Look.HERE if saw_all(repo, head.sha or "", commits) else Look.ELSEWHERE
        beyond = str(unseen(repo, head.sha or "", commits)) if look is Look.ELSEWHERE else ""
        replaced = began_there and not holds(repo, head.sha or "", commits[0])
    except ServiceError:
        gone = "git does not know all of its commits any more"
        return replace(facts, problem=gone, replaced=began_there)
    *merged, first = (each[:SHORT] for each in reversed(commits))
    looked_at = f"{first} with {' and '.join(reversed(merged))}" if merged else first
    again = facts.look_again or (_again(job, None) if beyond else "")
    return replace(facts, look=look, looked_at=looked_at, unseen=beyond, replaced=replaced, look_again=again)


def _again(job: JobRecord, pull_request: int | None) -> str:
    """Return the command that reviews the pull request, or the unreviewed commits of the tree."""
    if pull_request is not None:
        agent = "AGENT" if job.ephemeral else job.agent
        return f'service agent review {agent} "MESSAGE" --repo {job.repo} --pr {pull_request}'
    return f"service job review {job.root_job_id}"
