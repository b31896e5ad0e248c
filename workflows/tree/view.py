"""A tree in words: what the Temporal web UI shows while it runs."""

from collections.abc import Iterator

from workflows.contract import durations
from workflows.policy.settings import Bounds
from workflows.tree.records import JobRecord
from workflows.tree.state import TreeState

SUMMARY_LIMIT = 160


def details(state: TreeState, now: float) -> str:
    """Markdown: the task and why it stands where it does, the spend against every bound, the tree of jobs."""
    task = state.task
    lines = [f"**{_plain(task.title)}**: {task.state}{f' ({_plain(task.reason)})' if task.reason else ''}"]
    if task.next:
        lines.append(f"Next: `{task.next}`")
    return "\n\n".join([*lines, _spend(state, now), "\n".join(_jobs(state))])


def _spend(state: TreeState, now: float) -> str:
    bounds, used = state.input.settings.bounds, state.ledger()
    elapsed = max(used.elapsed_seconds, now - state.input.created_at - state.paused_seconds)
    return " - ".join(
        (
            f"jobs {used.jobs} of {bounds.max_delegation_total_jobs}",
            f"time {_clock(elapsed)} of {_clock(bounds.max_delegation_wall_clock_seconds)}",
            f"tokens {used.tokens:,}{_of_tokens(bounds)}",
            f"cost ${used.cost_usd:.2f}{_of_dollars(bounds)}",
        )
    )


def _of_tokens(bounds: Bounds) -> str:
    return f" of {bounds.max_delegation_token_budget:,}" if bounds.max_delegation_token_budget else ""


def _of_dollars(bounds: Bounds) -> str:
    return f" of ${bounds.max_delegation_cost_usd:.2f}" if bounds.max_delegation_cost_usd else ""


def _clock(seconds: float) -> str:
    return durations.format_duration(int(seconds))


def _jobs(state: TreeState) -> Iterator[str]:
    """Nested under the job that delegated or continued, in dispatch order."""
    children: dict[str | None, list[JobRecord]] = {}
    for job in state.jobs.values():
        children.setdefault(job.parent_job_id, []).append(job)
    waiting = [(0, job) for job in reversed(children.get(None, []))]
    while waiting:
        level, job = waiting.pop()
        yield f"{'  ' * min(level, 8)}- {_line(job)}"
        waiting += [(level + 1, child) for child in reversed(children.get(job.job_id, []))]


def _line(job: JobRecord) -> str:
    name = job.delegation_id or (job.continuation if job.continuation != "none" else "root")
    decided = f", {job.decision}" if job.decision else ""
    said = _plain(job.summary or job.reason)[:SUMMARY_LIMIT]
    return f"`{job.job_id}` {name} ({job.agent}, {job.action}): **{job.state}**{decided}{f' - {said}' if said else ''}"


def _plain(text: str) -> str:
    """One line that cannot dress up as markup of ours."""
    return " ".join(text.translate({ord(character): " " for character in "*_`#<>[]|"}).split())
