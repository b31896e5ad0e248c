"""Pipelines and runs on a terminal, and parsing of a typed payload."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.drawing.lines import FOLDED, Line, Piece
from cli.drawing.looks import of_state
from cli.drawing.trees import state_line
from cli.output import named, say, say_document, say_fields, say_json
from cli.words import clock, one_line, readable
from workflows.model.errors import UsageError
from workflows.text.invisible import prefixed

if TYPE_CHECKING:
    from bridge.operations.pipelines.runs import RunView, StageView
    from bridge.operations.service import Service


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Parse `KEY=VALUE` words, each key once."""
    payload: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} is not KEY=VALUE", "--payload branch=main")
        if key in payload:
            raise UsageError(f"the payload names {key!r} twice")
        payload[key] = value
    return payload


def show_pipeline(service: "Service", name: str, *, definition: bool, json: bool) -> None:
    """Print a pipeline's fields and its file."""
    from bridge.operations.pipelines import definitions

    value = asdict(definitions.get(service, name))
    text = value["definition"]
    if definition:
        _say_file({"name": name, "definition": text}, json=json)
        return
    if json:
        say_json(value)
        return
    del value["definition"]
    say_fields(readable(value.items()))
    say("", *prefixed(text.strip("\n")))


def show_run(service: "Service", run_id: str, *, definition: bool, json: bool) -> None:
    """Print a run, or the definition it was started with."""
    from bridge.operations.pipelines import runs

    if definition:
        text = runs.definition_of_run(service, run_id)
        _say_file({"run_id": run_id, "definition": text}, json=json)
        return
    run = runs.show_run(service, run_id)
    say_json(run) if json else say(*lines(run))


def _say_file(value: dict[str, str], *, json: bool) -> None:
    say_json(value) if json else say_document(value["definition"].rstrip("\n") + "\n")


def show_output(service: "Service", run_id: str, stage: str, attempt: int | None, *, json: bool) -> None:
    """Print a stage's output: standard output, then standard error."""
    from bridge.operations.pipelines import runs

    shown = runs.stage_output(service, run_id, stage, attempt)
    if json:
        say_json(shown)
        return
    say(f"{named(shown.stage)} {shown.state} attempt {shown.attempt}  {one_line(shown.said, 500)}".rstrip())
    for heading, text in (("output", shown.output), ("stderr", shown.stderr)):
        if text.strip():
            say("", f"{heading}:", *prefixed(text))


def lines(run: "RunView") -> Iterator[str]:
    """Yield a run as lines for a person."""
    from workflows.policy.prices import dollars

    yield state_line(f"{run.id}  {run.pipeline}  {run.state}{f': {run.reason}' if run.reason else ''}", run.state)
    ended = f", ended {clock(run.finished_at)}" if run.finished_at else ""
    spent = f", {run.tokens:,} tokens, {dollars(run.cost_usd, assumed=run.price_assumed)}" if run.tokens else ""
    yield f"started {clock(run.started_at)} by {run.trigger}{ended}{spent}"
    if run.belongs_to.what:
        yield f"belongs to {run.belongs_to}"
    for key, value in run.payload.items():
        yield f"  {named(key)} = {one_line(value)}"
    for stage in run.stages:
        yield stage_line(stage, "  ")


def stage_line(stage: "StageView", indent: str = "") -> Line:
    """Return a stage's line: its state in colour, its decision and summary."""
    from workflows.policy.decisions import decided

    attempt = f" attempt {stage.attempt}" if stage.attempt > 1 else ""
    job = f" [{stage.job_id}]" if stage.job_id else ""
    decision = f" {word}" if (word := decided(stage.state, stage.decision)) else ""
    said = f"{attempt}{decision}{job}  {one_line(stage.summary, 200)}".rstrip()
    state = Piece(stage.state, of_state(stage.state))
    return Line(f"{indent}{named(stage.id)} ", state, said, below=f"{indent}  {FOLDED}")
