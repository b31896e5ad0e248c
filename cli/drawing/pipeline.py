"""A run of a pipeline on a terminal, once or live."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cli.drawing.lines import FOLDED, Piece, ScreenLine, of_state, state_line
from cli.drawing.output import quote_name
from cli.drawing.words import clock, one_line

if TYPE_CHECKING:
    from bridge.operations.pipelines.runs import RunView, StageView
    from cli.drawing.live import LiveView

_RANKS = {"running": 0, "blocked": 1, "failed": 1, "pending": 2}
"""Priority of stages on a screen that is too short for all."""
_OVER = 3


def lines(run: "RunView") -> Iterator[str]:
    """Yield the lines that show a run to a person."""
    from workflows.policy.prices import dollars

    yield state_line(f"{run.id}  {run.pipeline}  {run.state}{f': {run.reason}' if run.reason else ''}", run.state)
    ended = f", ended {clock(run.finished_at)}" if run.finished_at else ""
    spent = f", {run.tokens:,} tokens, {dollars(run.cost_usd, assumed=run.price_assumed)}" if run.tokens else ""
    yield f"started {clock(run.started_at)} by {run.trigger}{ended}{spent}"
    if run.belongs_to.what:
        yield f"belongs to {run.belongs_to}"
    for key, value in run.payload.items():
        yield f"  {quote_name(key)} = {one_line(value)}"
    for stage in run.stages:
        yield stage_line(stage, "  ")


def stage_line(stage: "StageView", indent: str = "") -> ScreenLine:
    """Return a stage's line: its state in colour, its decision and summary."""
    from workflows.policy.decisions import decision_label

    attempt = f" attempt {stage.attempt}" if stage.attempt > 1 else ""
    job = f" [{stage.job_id}]" if stage.job_id else ""
    decision = f" {word}" if (word := decision_label(stage.state, stage.decision)) else ""
    details = f"{attempt}{decision}{job}  {one_line(stage.summary, 200)}".rstrip()
    state = Piece(stage.state, of_state(stage.state))
    return ScreenLine(f"{indent}{quote_name(stage.id)} ", state, details, below=f"{indent}  {FOLDED}")


def view(run: "RunView") -> "LiveView":
    from cli.drawing.live import LiveView
    from cli.drawing.viewport import ViewRow

    whole = list(lines(run))
    stages = [
        ViewRow(line, (_RANKS.get(stage.state, _OVER),), str(stage.state))
        for line, stage in zip(whole[len(whole) - len(run.stages) :], run.stages, strict=True)
    ]
    head = whole[: len(whole) - len(run.stages)]
    return LiveView([*head, f"  {goes_on(run)}"], stages, whole)


def goes_on(run: "RunView") -> str:
    """Return one line with the running stages and their times, and the run's cost."""
    from workflows.policy.prices import dollars
    from workflows.text.durations import format_duration

    if run.finished_at is not None:
        return ""
    now = time.time()
    running = [stage for stage in run.stages if stage.state == "running"]
    names = [f"{stage.id} {format_duration(int(now - (stage.started_at or now)))}" for stage in running]
    doing = f"running {', '.join(names)}" if names else str(run.state)
    over = sum(stage.finished_at is not None for stage in run.stages)
    spent = f"{run.tokens:,} tokens, {dollars(run.cost_usd, assumed=run.price_assumed)}"
    return f"{doing}; {over} of {len(run.stages)} stages over, {spent}, {format_duration(int(now - run.started_at))}"
