"""Sending a person's comments on a diff to an agent, which changes the work accordingly.

If a failure round asks what to do about the commented leg, the leg runs again with the comments (ruling F3). Otherwise
a new job continues the work, like a job that resolves conflicts (ruling O6).
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pydantic import BaseModel, Field, ValidationError

from activities.git.merges.task_line import LinePart
from activities.store import attempt_rows, branch_rows, event_rows, job_rows, tree_rows
from bridge.operations.branches import branches, diffs, merge_offer
from bridge.operations.branches.branches import Branches, BranchState
from bridge.operations.branches.diffs import FilePatch, JobDiff
from bridge.operations.branches.merge_offer import refuse_foreign
from bridge.operations.jobs import jobs, rounds
from bridge.operations.jobs.jobs import Tree
from bridge.operations.orders import follow_ups, new_jobs, resume, trees
from bridge.operations.service import Service
from workflows.contract.models import Action, Delegation
from workflows.contract.size_limits import cut_to_bound
from workflows.contract.storable import storable
from workflows.model.errors import RefusedError, UsageError
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.ids import root_of
from workflows.model.orders import ResumeOrder, signature
from workflows.model.rounds import RoundKind
from workflows.model.rows import EventRecord, JobRecord, RoundRecord
from workflows.model.workers import Worker
from workflows.policy.answers import Verb
from workflows.policy.assignments import ephemeral_worker
from workflows.text.plurals import quantity
from workflows.text.quoted_data import inline

READ_BYTES = 64 << 20
"""How many bytes of a diff are searched for the commented lines."""
MOST_COMMENTS = 200
MOST_RECORDED = 50


@dataclass(frozen=True)
class DiffComment:
    """A person's comment on a line of a diff."""

    path: str
    line: int
    text: str
    old: bool = False
    """True for a line of the old file: one that the diff removes."""

    @property
    def place(self) -> str:
        return f"{self.path}:{'old:' if self.old else ''}{self.line}"


@dataclass(frozen=True)
class Feedback:
    """All that a person says about a diff."""

    comments: Sequence[DiffComment] = ()
    text: str = ""
    """A comment on the diff as a whole."""
    head: str = ""
    """The commit that the person read; empty if it doesn't matter."""
    whole: bool = False
    """True if the diff is that of the job's whole tree; False if it is the job's own."""


class ReviseAnswer(BaseModel, frozen=True):
    """The job that works on the comments. If it is new, `merge` is the command that merges it into the task's
    branch.
    """

    job_id: str
    root_job_id: str = Field(description="The task whose work was commented on.")
    agent: str
    task_branch: str
    again: bool = Field(description="True if the part itself runs again; false if the job is a new one.")


async def revise(
    service: Service,
    job_id: str,
    feedback: Feedback,
    *,
    actor: str,
    channel: str,
    agent: str = "",
    root: str | None = None,
) -> ReviseAnswer:
    """Send comments on the diff of a job, or of its tree, to an agent.

    A job started under the id `root` before is returned.
    """
    job, whole = jobs.get(service, job_id), jobs.tree(service, job_id)
    tree = branches.of_tree(service, whole.task.root_job_id, typed=f"service job revise {job_id}", fresh=True)
    if root and (started := job_rows.get(service.store, root)):
        return _answer(root, tree, started.agent)
    _refuse_early(job, whole, tree, feedback)
    diff = diffs.of_tree(service, job_id) if feedback.whole else diffs.of_job(service, job_id)
    _refuse_stale(job_id, diff, feedback)
    message = new_jobs.storable_message(
        service, "\n".join(_message(job, whole, feedback, _quote_lines(job_id, diff, feedback)))
    )
    waits = None if feedback.whole or agent else _failure_of(service, job)
    if waits:
        order = ResumeOrder(actor=actor, channel=channel, job_id=waits.coordinator_id, verb=Verb.RETRY, text=message)
        exact = {"round": waits.number, "digest": waits.digest, "request_id": root or ""}
        await resume.resume(service, order.model_copy(update=exact))
        made = _answer(job_id, tree, job.agent, again=True)
    else:
        made = await _go_on(service, job, whole, tree, feedback, message, agent, root)
    _record(service, tree, job, diff, feedback, made, signature(actor, channel))
    return made


def receiver(service: Service, job: JobRecord) -> str:
    """Return the agent that gets comments on a job's diff; empty if no agent can take them."""
    with suppress(UsageError):
        return _worker(service, job, jobs.tree(service, job.job_id), "").name
    return ""


def sent_comments(service: Service, job: JobRecord) -> list[EventRecord]:
    """Return the events of comments on a job's diff, oldest first."""
    events = event_rows.of_tree(service.store, job.root_job_id, kind=BranchEventKind.REVISED)
    return [each for each in events if each.job_id == job.job_id]


def received_comments(service: Service, job: JobRecord) -> list[EventRecord]:
    """Return the events of comments that a job works on, oldest first."""
    kept = tree_rows.get(service.store, job.root_job_id) if _is_root(job) else None
    roots = {root_of(each.job_id) for each in kept.start.line} if kept else {job.root_job_id}
    events = [event_rows.of_tree(service.store, root, kind=BranchEventKind.REVISED) for root in roots if root]
    return [each for of_tree in events for each in of_tree if each.data.get("by") == job.job_id]


def refusal(job: JobRecord, tree: Tree, *, whole: bool) -> str:
    """Return why comments on the diff of a job, or of its whole tree, can't be sent now; empty if they can."""
    if whole:
        return "" if tree.over else f"{job.root_job_id} is still at work"
    return "" if job.state.has_ended else f"{job.job_id} is still {job.state}"


def _is_root(job: JobRecord) -> bool:
    return job.job_id == job.root_job_id


def _refuse_early(job: JobRecord, whole: Tree, tree: Branches, feedback: Feedback) -> None:
    if not feedback.text.strip() and not feedback.comments:
        raise UsageError("there is nothing to send: no comment and no text", f"service job diff {job.job_id}")
    if len(feedback.comments) > MOST_COMMENTS:
        raise UsageError(f"{len(feedback.comments)} comments are more than {MOST_COMMENTS}; send them in parts")
    if empty := next((each for each in feedback.comments if not each.text.strip()), None):
        raise UsageError(f"the comment on {empty.place} is empty")
    if why_not := refusal(job, whole, whole=feedback.whole):
        raise RefusedError(f"{why_not}; nothing was sent", f"service job tree {job.root_job_id} --watch")
    follow_ups.refuse_without_base(tree)


def _refuse_stale(job_id: str, diff: JobDiff, feedback: Feedback) -> None:
    if not diff.head or diff.head == diff.base:
        raise RefusedError(f"{job_id} left no commits that a job could go on from", f"service job show {job_id}")
    if feedback.head and feedback.head != diff.head:
        raise RefusedError(
            f"the diff of {job_id} has changed since it was read: it ended at {feedback.head[:10]}, and ends at"
            f" {diff.head[:10]} now; nothing was sent",
            f"service job diff {job_id}",
        )


def _quote_lines(job_id: str, diff: JobDiff, feedback: Feedback) -> dict[DiffComment, str]:
    """Return the line that each comment is about; raise if the diff does not show it."""
    if not feedback.comments:
        return {}
    text, _ = diffs.beginning(diff.pieces(), READ_BYTES)
    files: Mapping[str, FilePatch] = {each.path: each for each in diffs.files(text)}
    lines = dict[DiffComment, str]()
    show = f"service job diff {job_id}{' --tree' if diff.source == 'tree' else ''}"
    for comment in feedback.comments:
        if comment.path not in files:
            raise UsageError(f"the diff of {job_id} has no file {comment.path!r}", f"{show} --name-only")
        line = diffs.find_line(files[comment.path], comment.line, old=comment.old)
        if line is None:
            side = "old" if comment.old else "new"
            raise UsageError(
                f"the diff of {job_id} does not show line {comment.line} of the {side} {comment.path}:"
                " comment on a line that it shows, or say it in the text",
                show,
            )
        lines[comment] = line.text
    return lines


def _message(job: JobRecord, whole: Tree, feedback: Feedback, quoted: Mapping[DiffComment, str]) -> Iterator[str]:
    """Yield the instructions. Lines of the diff are quoted, since an agent wrote them."""
    name = "all work" if feedback.whole else f"the work of {inline(job.delegation_id or job.job_id)} ({job.job_id})"
    yield f"Revise {name} in the task {inline(whole.task.title)}: a person has read its diff, and says what to change."
    if feedback.text.strip():
        yield f"\n{feedback.text.strip()}"
    for comment in feedback.comments:
        side, line = "old" if comment.old else "new", quoted[comment].strip()
        yield f"\n- {inline(f'{comment.path}:{comment.line}')} ({side}): > {inline(line) if line else 'an empty line'}"
        yield f"\n{textwrap.indent(comment.text.strip(), '  ')}"
    yield "\nDo what each comment asks, and change nothing else. Run the tests."


def _first_words(feedback: Feedback) -> str:
    """Return the comment that names the task: on the whole, else on the first line."""
    texts = (feedback.text, *(comment.text for comment in feedback.comments))
    return next(text for text in texts if text.strip())


def _failure_of(service: Service, job: JobRecord) -> RoundRecord | None:
    """Return the open round that asks what to do about this leg's failure."""
    failures = (each for each in rounds.open_of(service, job.root_job_id) if each.kind is RoundKind.FAILURE)
    return next((each for each in failures if job.job_id in {leg.job_id for leg in each.failing}), None)


async def _go_on(
    service: Service,
    job: JobRecord,
    whole: Tree,
    tree: Branches,
    feedback: Feedback,
    message: str,
    agent: str,
    root: str | None,
) -> ReviseAnswer:
    repo = branches.checkout(service, tree.repo, f"service job revise {job.job_id}")
    worker = _worker(service, job, whole, agent)
    if feedback.whole:
        merge_offer.refuse_foreign_on(service, tree, "; nothing was started")
        parts = merge_offer.parts_of(service, tree)
    else:
        leg = next(each for each in tree.legs if each.job_id == job.job_id)
        if leg.state is not BranchState.MERGED:
            refuse_foreign(service, tree, leg, "; nothing was started")
        parts = [LinePart(leg.leg, leg.job_id, leg.branch, leg.head_sha or "")]
    start = follow_ups.going_on(service, tree, worker, message, parts, root)
    start = start.model_copy(update={"title": new_jobs.title_of(service.kept.hide(storable(_first_words(feedback))))})
    started = await trees.start(service, start, repo.host)
    return _answer(started, tree, worker.name)


def _answer(job_id: str, tree: Branches, agent: str, *, again: bool = False) -> ReviseAnswer:
    names = {"job_id": job_id, "root_job_id": tree.root_job_id, "agent": agent, "task_branch": tree.task_branch}
    return ReviseAnswer(**names, again=again)


def _worker(service: Service, job: JobRecord, whole: Tree, wanted: str) -> Worker:
    """Return the wanted agent, else the job's own worker, else another that may implement there."""
    own = None if wanted or not job.ephemeral else _ephemeral(service, job)
    if own and Action.IMPLEMENT in own.capabilities:
        return own
    writers = [each.agent for each in whole.jobs if each.action is Action.IMPLEMENT and not each.ephemeral]
    first = [job.agent, *writers, *(each.agent for each in whole.jobs)]
    agent = follow_ups.choose(service, Action.IMPLEMENT, whole.task.repo, wanted, first)
    if agent is None:
        raise UsageError(f"no agent may implement on {whole.task.repo}", "service agent list")
    return agent.worker


def _ephemeral(service: Service, job: JobRecord) -> Worker | None:
    """Return the ephemeral worker of a job, as its delegation described it."""
    kept = tree_rows.get(service.store, job.root_job_id)
    if kept is not None and _is_root(job):
        return kept.start.assignment.worker
    given = attempt_rows.given_in(service.store, job.root_job_id).get(job.parent_job_id or "")
    legs = [*(kept.start.legs if kept else ())]
    with suppress(ValidationError):
        legs += map(Delegation.model_validate, given.delegations if given else ())
    ephemeral = next((each.ephemeral for each in legs if each.id == job.delegation_id and each.ephemeral), None)
    return ephemeral_worker(job.delegation_id or "", ephemeral) if ephemeral else None


def _record(
    service: Service, tree: Branches, job: JobRecord, diff: JobDiff, feedback: Feedback, made: ReviseAnswer, actor: str
) -> None:
    """Record the comments with their author on the job that they are about, and the job that works on them."""
    hide = service.kept.hide
    texts = [feedback.text.strip()] if feedback.text.strip() else []
    texts += [f"{each.place}: {each.text.strip()}" for each in feedback.comments]
    event = BranchEvent(
        actor=actor,
        branch=job.branch or "",
        head_sha=diff.head,
        task_branch=tree.task_branch,
        merged=False,
        by=made.job_id,
        comments=[cut_to_bound("reason", hide(storable(text))) for text in texts[:MOST_RECORDED]],
    )
    count = quantity(len(texts), "comment")
    message = f"{actor} sent {count} on its diff; {made.job_id} works on that"
    branch_rows.record(service.store, BranchEventKind.REVISED, job.job_id, event, message)
