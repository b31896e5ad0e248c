"""Pipelines and runs on a terminal, and a payload as it is typed."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.output import named, say, say_document, say_fields, say_json, tell
from cli.waiting import Asker, left_alone
from cli.words import clock, one_line, readable
from workflows.contract.visible import prefixed
from workflows.model.errors import UsageError

if TYPE_CHECKING:
    from bridge.machine.steps import Step
    from bridge.operations.pipeline_runs import RunView, StageView
    from bridge.operations.service import Service

INTERVAL = 0.2


def pairs(words: Sequence[str]) -> dict[str, str]:
    """`KEY=VALUE`, each key once."""
    payload: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} is not KEY=VALUE", "--payload branch=main")
        if key in payload:
            raise UsageError(f"the payload names {key!r} twice")
        payload[key] = value
    return payload


def follow(service: "Service", run_id: str, *, json: bool) -> int:
    """Say each change once, then the end; 0 when the run succeeded, 1 when it ended otherwise."""
    from cli.drawing.progress import progress

    with left_alone(f"service pipeline watch {run_id}", "service attention"), progress(timed=False) as step:
        run = _until_over(service, run_id, Asker(service, json=json), step)
    say_json(run.model_dump(mode="json")) if json else say(*lines(run))
    return 0 if run.state == "succeeded" else 1


def _until_over(service: "Service", run_id: str, asker: Asker, step: "Step") -> "RunView":
    from bridge.operations import pipeline_runs

    said: dict[str, tuple[str, int]] = {}
    state = ""
    while True:
        run = pipeline_runs.show_run(service, run_id)
        step(_goes_on(run))
        for stage in run.stages:
            if said.get(stage.id) != (stage.state, stage.attempt) and stage.state != "pending":
                said[stage.id] = (stage.state, stage.attempt)
                tell(_stage(stage))
        if run.state == "awaiting_human" != state:
            tell(f"waits: {run.reason}")
        state = run.state
        for stage in run.stages if state == "awaiting_human" else ():
            if stage.job_id:
                asker.look(stage.job_id)
        if run.finished_at is not None:
            return run
        time.sleep(INTERVAL)


def _goes_on(run: "RunView") -> str:
    """Which stages run and for how long, and what the run has cost, on a line."""
    from workflows.contract.durations import format_duration
    from workflows.policy.prices import dollars

    if run.finished_at is not None:
        return ""
    now = time.time()
    running = [stage for stage in run.stages if stage.state == "running"]
    names = [f"{stage.id} {format_duration(int(now - (stage.started_at or now)))}" for stage in running]
    doing = f"running {', '.join(names)}" if names else str(run.state)
    over = sum(stage.finished_at is not None for stage in run.stages)
    spent = f"{run.tokens:,} tokens, {dollars(run.cost_usd, assumed=run.price_assumed)}"
    return f"{doing}; {over} of {len(run.stages)} stages over, {spent}, {format_duration(int(now - run.started_at))}"


def show_pipeline(service: "Service", name: str, *, definition: bool, json: bool) -> None:
    """What is known of it, and its file."""
    from bridge.operations import pipelines

    value = pipelines.as_json(pipelines.get(service, name))
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
    """A run as it is now; or the file it was started with, whatever that is now."""
    from bridge.operations import pipeline_runs

    if definition:
        text = pipeline_runs.definition_of_run(service, run_id)
        _say_file({"run_id": run_id, "definition": text}, json=json)
        return
    run = pipeline_runs.show_run(service, run_id)
    say_json(run.model_dump(mode="json")) if json else say(*lines(run))


def _say_file(value: dict[str, str], *, json: bool) -> None:
    say_json(value) if json else say_document(value["definition"].rstrip("\n") + "\n")


def show_output(service: "Service", run_id: str, stage: str, attempt: int | None, *, json: bool) -> None:
    """What a stage printed: standard output first, its complaints after it."""
    from bridge.operations import pipeline_runs

    shown = pipeline_runs.stage_output(service, run_id, stage, attempt)
    if json:
        say_json(asdict(shown))
        return
    say(f"{named(shown.stage)} {shown.state} attempt {shown.attempt}  {one_line(shown.said, 500)}".rstrip())
    for heading, text in (("output", shown.output), ("stderr", shown.stderr)):
        if text.strip():
            say("", f"{heading}:", *prefixed(text))


def lines(run: "RunView") -> Iterator[str]:
    """A run as a person reads it."""
    from workflows.policy.prices import dollars

    yield f"{run.id}  {run.pipeline}  {run.state}{f': {run.reason}' if run.reason else ''}"
    ended = f", ended {clock(run.finished_at)}" if run.finished_at else ""
    spent = f", {run.tokens:,} tokens, {dollars(run.cost_usd, assumed=run.price_assumed)}" if run.tokens else ""
    yield f"started {clock(run.started_at)} by {run.trigger}{ended}{spent}"
    if run.belongs_to.what:
        yield f"belongs to {run.belongs_to}"
    for key, value in run.payload.items():
        yield f"  {named(key)} = {one_line(value)}"
    for stage in run.stages:
        yield f"  {_stage(stage)}"


def _stage(stage: "StageView") -> str:
    from workflows.policy.decisions import decided

    attempt = f" attempt {stage.attempt}" if stage.attempt > 1 else ""
    job = f" [{stage.job_id}]" if stage.job_id else ""
    decision = f" {word}" if (word := decided(stage.state, stage.decision)) else ""
    return f"{named(stage.id)} {stage.state}{attempt}{decision}{job}  {one_line(stage.summary, 200)}".rstrip()
