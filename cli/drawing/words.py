"""Times, jobs and results as text for a terminal."""

import getpass
import re
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from bridge.operations.jobs.claimed_changes import claims, entry, in_sum
from cli.drawing.lines import FOLDED, Piece, ScreenLine, Tone, in_fields, of_state, path, prose, with_head
from cli.drawing.widths import cut
from workflows.text.invisible import prefix_lines
from workflows.text.plurals import quantity
from workflows.text.sizes import format_size

if TYPE_CHECKING:
    from activities.runs.status import RunStatus
    from bridge.operations.branches.branches import WayOut
    from bridge.operations.branches.drops import UnmergedWork
    from bridge.operations.jobs.jobs import JobDetail
    from bridge.operations.jobs.tree_list import TreeRow
    from bridge.operations.registry.reviews import ReviewView
    from workflows.model.rows import EventRecord, JobRecord

ENDED_BADLY = ("failed", "blocked", "cancelled")
WAITING = ("blocked", "awaiting_human")
"""The states of a task that needs a person."""
_STAGES = {
    "waiting": "queued",
    "put_off": "put off, not running",
    "ended": "finished, saving the result",
}
LONGEST = 300
"""Longest text of a table's cell; the widest terminals can show it."""
_BLANKS = re.compile("[ \t\n]+|\r\n")
UNKNOWN = "at an unknown time"
"""The words for an impossible time, which somebody wrote into the store by hand."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def ago(at: float) -> str:
    """Format the time that has passed since `at`, in the largest unit that fits."""
    if not isfinite(at):
        return UNKNOWN
    seconds = max(0, int(time.time() - at))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"


def clock(at: float) -> str:
    """Format local date and time, with the zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at))
    except (ValueError, OverflowError, OSError):
        return UNKNOWN


def readable(fields: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, object]]:
    """Format fields of the JSON output for people: lists joined, times as dates."""
    for name, value in fields:
        if isinstance(value, list):
            yield name, ", ".join(value)
        else:
            yield name, clock(value) if name.endswith("_at") and isinstance(value, float) else value


def state(word: str, why: str = "") -> ScreenLine:
    """Return a state in its colour, with the reason."""
    return ScreenLine(Piece(word, of_state(word)), f": {why}" if why else "", below=FOLDED)


def one_line(text: str, width: int = 60) -> str:
    """Join the text's lines with blanks, and cut the result to the width."""
    return cut(" ".join(_BLANKS.split(text.strip())), width)


def actor() -> str:
    """Return the user's name as records show it."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def signature() -> str:
    """Return the user's name with the channel, for records that store both as one text."""
    from workflows.model import orders

    return orders.signature(actor(), "cli")


def event_in_words(event: "EventRecord") -> ScreenLine:
    """Return an event on one line."""
    when, message = Piece(clock(event.at), Tone.QUIET), one_line(event.message, 400)
    return ScreenLine(
        when, f"  {event.job_id}  ", Piece(event.kind, Tone.STRONG), f": {message}", below=f"    {FOLDED}"
    )


def review_in_words(review: "ReviewView") -> list[str]:
    """Describe an in-session review, labelled as one."""
    status = review.review_status
    return [
        f"{review.review_id}  review of pull request {review.pull_request} at {review.head_sha}",
        f"{status.state}, {status.grade}, {status.label}: what its author says, no gate reads it",
        *([f"verdict: {status.verdict}"] if status.verdict else []),
        *(f"{clock(n.at)}  {n.author_asserted} (asserted): {n.text}" for n in review.notes),
    ]


def review_row(review: "ReviewView") -> tuple[str, ...]:
    """Return a table row for an in-session review, labelled as one."""
    status = review.review_status
    return (
        review.review_id,
        status.state,
        review.repo or "-",
        str(review.pull_request),
        review.head_sha[:12],
        one_line(review.workflow, LONGEST),
        ago(review.opened_at),
        f"{status.grade}, {status.label}",
        one_line(status.verdict or "-", LONGEST),
    )


def tree_row(row: "TreeRow") -> tuple[str, ...]:
    """Return a table row for a tree."""
    from workflows.policy.prices import dollars

    tree = row.tree
    return (
        row.root.job_id,
        tree.state.words,
        one_line(tree.title, LONGEST),
        one_line(tree.waits_for.words or "-", LONGEST),
        f"{tree.ended_jobs}/{tree.jobs}",
        f"{tree.tokens:,}" if tree.tokens else "-",
        dollars(tree.cost_usd, assumed=tree.price_assumed) if tree.cost_usd else "-",
        ago(tree.opened_at),
        row.root.repo,
        one_line(tree.last_words or "-", LONGEST),
        one_line(tree.preflight_failed or "-", LONGEST),
    )


def job_row(job: "JobRecord", label: str) -> tuple[str, ...]:
    """Return a table row for a job, with `label` in place of its state."""
    from workflows.policy.decisions import decision_label

    return (
        job.job_id,
        label,
        job.action,
        job.agent,
        job.repo,
        decision_label(job.state, job.decision) or "-",
        ago(job.queued_at),
        one_line(job.summary or job.reason, LONGEST),
        one_line(job.preflight_failed or "-", LONGEST),
    )


def in_words(detail: "JobDetail", program: str, page: str = "") -> list[str]:
    """Return the lines that show a job to a person: state first, evidence last. The job's id links to `page`."""
    from workflows.policy.cut_short import task_words
    from workflows.policy.decisions import decision_label
    from workflows.policy.prices import dollars

    job, task = detail.job, detail.task
    waits = task if task and (task.state in WAITING or task.waits_for in ("runs", "start")) else None
    stuck = waits or (task if job.state in ENDED_BADLY else None)
    cost = dollars(job.cost_usd, assumed=job.price_assumed)
    spent = f"{job.usage.input_tokens} in, {job.usage.output_tokens} out, {cost}" if job.usage.total else ""
    if spent and job.usage.requests:
        spent += f", by {job.usage.requests} request{'s' if job.usage.requests > 1 else ''}"
    fields: list[tuple[str, object]] = [
        ("job", ScreenLine(Piece(job.job_id, link=page))),
        ("state", state(detail.state_label or job.state, job.reason)),
        ("agent is", _live(detail.live) if detail.live else ""),
        ("decision", state(decision_label(job.state, job.decision))),
        ("summary", job.summary),
        ("agent", f"{job.agent} ({program}), {job.action} on {job.repo}"),
        ("belongs to", ScreenLine(Piece(str(detail.belongs_to), link=detail.belongs_to.address))),
        ("model", " ".join(word for word in (job.model, job.effort) if word)),
        (
            "task",
            ScreenLine(f"{task.task_id} ", *state(task_words(task), task.title).pieces, below=FOLDED) if task else "",
        ),
        ("because", waits.reason if waits else ""),
        ("parent", job.parent_job_id),
        ("attempt", job.attempt if job.attempt > 1 else ""),
        ("host", detail.host),
        ("branch", job.branch),
        ("head", job.head_sha),
        ("tokens", spent),
        ("queued", clock(job.queued_at)),
        ("started", clock(job.started_at) if job.started_at else ""),
        ("ended", clock(job.ended_at) if job.ended_at else ""),
        ("box", (detail.diagnostics or {}).get("box", "")),
        ("worktree", ScreenLine(path(detail.worktree)) if detail.worktree and not job.ended_at else ""),
        ("next", ScreenLine(job.next or (stuck.next if stuck else ""))),
    ]
    return [*in_fields(fields), *_result(detail.payload or {}), *_diagnostics(job.job_id, detail.diagnostics or {})]


def _live(live: "RunStatus") -> str:
    """Describe the agent's activity and its last line of output."""
    stage = _STAGES.get(live.stage, live.stage)
    if live.stage == "waiting":
        return stage
    if live.last_output_at is None:
        return f"{stage}; it has printed nothing yet"
    return f"{stage}; {quantity(live.output_bytes, 'byte')}, the last {ago(live.last_output_at)}: {live.last_line}"


def _result(payload: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    result = payload.get("service_result") or {}
    seen = payload.get("result_observation")
    for heading in ("findings", "changes_made", "tests_run", "needs"):
        entries = [entry(each) for each in result.get(heading) or ()]
        if heading == "changes_made" and seen:
            lines += ["", "changes made, as claimed and as seen:", *claim_lines(entries, seen)]
        elif entries:
            lines += [
                "",
                heading.replace("_", " ") + ":",
                *(line for each in entries for line in with_head("  -", each)),
            ]
    return lines


def way_out_in_words(way: "WayOut") -> list[str]:
    """Describe a conflict that blocks a task, and the commands that resolve it, in order."""
    return [
        f"{way.what} in:",
        *(f"  - {name}" for name in way.files),
        "to go on:",
        *(f"  {command}" for command in way.commands),
        "or let an agent resolve it:",
        f"  service job resolve {way.root_job_id}",
    ]


def _diagnostics(job_id: str, diagnostics: dict[str, Any]) -> list[str]:
    from workflows.contract.faults import first

    lines: list[str] = []
    if forged := diagnostics.get("forged"):
        lines += ["", prose(forged)]
    if faults := diagnostics.get("faults"):
        lines += ["", "faults of the result:", *(prose(f"  - {fault}") for fault in first(faults))]
    if diagnostics.get("discarded_diff"):
        lines += ["", f"it changed files, which are thrown away: service job diff {job_id}"]
    if tail := diagnostics.get("stderr"):
        lines += ["", "last words of the agent:", *prefix_lines(str(tail).rstrip("\n"))[-10:]]
    return lines


SHOWN = 50


def claim_lines(changes: Sequence[str], seen: dict[str, Any]) -> Iterator[str]:
    """Yield each claim, then unclaimed changes, then the summary."""
    for claim in claims(changes, seen):
        yield prose(f"  {'✔' if claim.is_observed else '?'} {claim.text}")
        yield prose(f"      {claim.grade}: {claim.evidence}")
    unclaimed = seen["unclaimed_files"]
    if unclaimed:
        yield "changed, but not reported:"
    yield from (f"  ! {name}" for name in unclaimed[:SHOWN])
    if len(unclaimed) > SHOWN:
        yield f"  ! and {len(unclaimed) - SHOWN} more"
    yield prose(f"observed: {in_sum(seen)}")


def work_in_sum(works: "Sequence[UnmergedWork]") -> str:
    """Return a sentence on the number, size and age of unmerged branches."""
    count, oldest = sum(len(work.branches) for work in works), min(work.ended_at for work in works)
    trees, branches = quantity(len(works), "task"), quantity(count, "unmerged branch", "unmerged branches")
    held = format_size(sum(work.bytes for work in works))
    return f"{branches} of {trees} take {held}, the oldest ended {ago(oldest)}"
