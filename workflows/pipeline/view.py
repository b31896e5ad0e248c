"""A run in words, for the Temporal web UI."""

from workflows.pipeline.plan import StageState
from workflows.pipeline.rows import RunRecords
from workflows.pipeline.state import RunMemory, StageMemory
from workflows.policy import binding_words
from workflows.policy.decisions import decision_label
from workflows.policy.prices import dollars
from workflows.text.markdown import summary_line
from workflows.tree.details import REFUSAL_LIMIT, plain

MARKS = {
    StageState.PENDING: "·",
    StageState.RUNNING: "▶",
    StageState.SUCCEEDED: "✔",
    StageState.FAILED: "✘",
    StageState.BLOCKED: "■",
    StageState.SKIPPED: "-",
    StageState.CANCELLED: "○",
}
_LIMIT = 160


def wrote(records: RunRecords) -> str:
    """Describe what happened, for the line beside a step in the web UI."""
    stages: dict[str, list[str]] = {}
    for stage in records.stages:
        stages.setdefault(stage.state, []).append(stage.stage_id)
    moved = [f"{', '.join(names)} {state}" for state, names in stages.items()]
    return summary_line("; ".join([*moved, f"the run is {records.run.state}"]))


def details(run: RunMemory) -> str:
    """Render the run as Markdown: its state and the reason, and a line for each stage."""
    start = run.input
    why = f": {plain(run.reason)}" if run.reason else ""
    spent = f"{run.usage.total:,} tokens, {dollars(run.cost_usd, assumed=run.price_assumed)}"
    lines = [_line(stage) for stage in run.stages.values()]
    related = binding_words.in_words(start.pull_request, start.issue, start.github)
    refused = [f"Refused: {plain(run.last_refusal)[:REFUSAL_LIMIT]}"] if run.last_refusal else []
    return "\n\n".join(
        [
            f"**{start.pipeline}** {start.run_id} on `{start.repo}`, started by {start.trigger}",
            *([related] if related else []),
            f"**{run.state}**{why}",
            *refused,
            "\n".join(["```", *lines, "```"]),
            spent,
        ]
    )


def _line(stage: StageMemory) -> str:
    attempt = f" attempt {stage.attempt}" if stage.attempt > 1 else ""
    needs = f" after {', '.join(stage.plan.needs)}" if stage.plan.needs else ""
    decision = f" {word}" if (word := decision_label(stage.state, stage.decision)) else ""
    job = f" [{stage.job_id}]" if stage.job_id else ""
    words = plain((stage.waits_for and f"waits for people: {stage.waits_for}") or stage.reason or stage.summary)
    head = f"{MARKS[stage.state]} {stage.plan.id} {stage.plan.kind}{needs}: {stage.state}{attempt}"
    return f"{head}{decision}{job}  {words[:_LIMIT]}".rstrip()
