"""`service pipeline`: registers and runs pipelines, and follows their runs."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.dashboard import Web, open_page
from cli.drawing.lines import of_state
from cli.drawing.output import quote_name, say, say_document, say_fields, say_json, say_next, say_table, tell
from cli.drawing.tables import Column
from cli.drawing.words import LONGEST, ago, one_line, readable
from cli.invocation.options import Base, Issue, Json, Pr, Timeout, Wait, service_here, token_here
from workflows.model.errors import UsageError
from workflows.text.invisible import prefix_lines

if TYPE_CHECKING:
    from bridge.operations.service import Service

app = typer.Typer(help="Register pipelines, and run them.", no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(help="The pipeline's name.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The id that `pipeline run` printed.")]
LISTED = (
    "NAME",
    Column("REPO", least=12, leaves=1),
    Column("ENABLED", tone=of_state),
    Column("SCHEDULED", tone=of_state),
)
RUNS = (
    "RUN",
    Column("STATE", tone=of_state),
    Column("PIPELINE", least=8),
    Column("BELONGS_TO", leaves=4),
    Column("TRIGGER", leaves=3),
    Column("HALTED_AT", leaves=2),
    Column("STARTED", leaves=1),
    Column("REASON", least=16, plain=60),
)


@app.command()
def add(
    file: Annotated[Path, typer.Argument(help="A .yaml, .yml or .toml file.")],
    json: Json = False,
) -> None:
    """Register a pipeline, or replace the one with its name. Active runs keep the file they started with."""
    import asyncio

    from bridge.operations.pipelines import definitions
    from bridge.operations.registry import arguments

    service = service_here()
    pipeline = asyncio.run(definitions.add(service, *definitions.read_file(file)))
    if warning := arguments.label_caveat(service, definitions.required_labels(pipeline)):
        tell(f"warning: {warning}")
    if json:
        say_json(pipeline)
        return
    say(f"{pipeline.name} is registered")
    if pipeline.enabled:
        say_next(f"service pipeline run {pipeline.name}", f"service pipeline show {pipeline.name}")
    else:
        say("it is disabled")


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the registered pipelines."""
    from bridge.operations.pipelines import definitions

    known = definitions.every(service_here())
    if json:
        say_json(known)
        return
    rows = [
        (pipeline.name, pipeline.repo or "-", "yes" if pipeline.enabled else "no", "yes" if pipeline.scheduled else "-")
        for pipeline in known
    ]
    empty = "no pipelines; add one: service pipeline add FILE"
    say_table(LISTED, rows, empty)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|RUN", help="A pipeline, or the id of a run.")],
    stage: Annotated[str | None, typer.Option(help="Print the output of this shell stage of the run.")] = None,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Number of the stage's attempt; the last one by default.")
    ] = None,
    definition: Annotated[
        bool, typer.Option("--definition", help="Print only the file; for a run, the one it began with.")
    ] = False,
    json: Json = False,
    web: Web = False,
) -> None:
    """Show a pipeline and its file, a run with its stages, or the output of a stage."""
    from bridge.operations.home import links
    from bridge.operations.pipelines import definitions

    service = service_here()
    is_run = name.startswith("prun-") and not any(each.name == name for each in definitions.every(service))
    if web:
        open_page(service, (links.page_of_run if is_run else links.page_of_pipeline)(service, name))
    elif stage is not None:
        show_output(service, name, stage, attempt, json=json)
    elif attempt is not None:
        raise UsageError("--attempt is of a stage: add --stage ID")
    elif is_run:
        _show_run(service, name, definition=definition, json=json)
    else:
        _show_pipeline(service, name, definition=definition, json=json)


@app.command()
def run(
    name: Name,
    payload: Annotated[
        list[str] | None, typer.Option("--payload", metavar="KEY=VALUE", help="A value for the run; may be repeated.")
    ] = None,
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Start a run. Refused while a run of this pipeline is active."""
    import asyncio

    from bridge.operations.pipelines import definitions
    from cli.asking.pipeline import follow

    service = service_here()
    given, token = _pairs(payload or []), token_here(service)
    begun = definitions.run(
        service, name, given, pull_request=pr, issue=issue, base=base, stage_timeout=timeout, token=token
    )
    run_id = asyncio.run(begun)
    if wait:
        raise typer.Exit(follow(service, run_id, json=json))
    if json:
        say_json({"run_id": run_id})
        return
    say(run_id)
    say_next(f"service pipeline watch {run_id}", "service attention")


@app.command()
def watch(run_id: RunId, json: Json = False) -> None:
    """Follow a run to its end, and show it."""
    from cli.asking import pipeline

    raise typer.Exit(pipeline.watch(service_here(), run_id, json=json))


@app.command()
def runs(
    pipeline: Annotated[str | None, typer.Option(help="Only runs of this pipeline.")] = None,
    repo: Annotated[str | None, typer.Option(help="Only runs on OWNER/NAME.")] = None,
    state: Annotated[str | None, typer.Option(help="Only runs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="Continue after an earlier list: its `more:` line has the value.")
    ] = None,
    json: Json = False,
    web: Web = False,
) -> None:
    """List the newest runs; or show one: `service pipeline show RUN`."""
    from bridge.operations.home import links
    from bridge.operations.pipelines import runs
    from workflows.policy.binding_words import in_words

    if web:
        service = service_here()
        open_page(service, links.page_of_pipeline(service, pipeline) if pipeline else links.RUNS)
        return
    page = runs.list_runs(service_here(), runs.RunFilter(pipeline, repo, state, limit, cursor))
    if json:
        say_json(page)
        return
    rows = [
        (
            row.id,
            row.state,
            row.pipeline,
            in_words(row.pull_request, row.issue) or "-",
            row.trigger,
            row.halt_stage or "-",
            ago(row.started_at),
            one_line(row.reason, LONGEST),
        )
        for row in page.runs
    ]
    say_table(RUNS, rows, "no runs; start one: service pipeline run NAME")
    if page.next_cursor:
        say(f"more: --cursor {page.next_cursor}")


@app.command()
def cancel(run_id: RunId, json: Json = False) -> None:
    """End a run: its commands and agents are stopped."""
    import asyncio

    from bridge.operations.pipelines import definitions
    from cli.drawing.words import signature

    shown = asyncio.run(definitions.cancel(service_here(), run_id, actor=signature()))
    if json:
        say_json(shown)
        return
    say(f"{run_id} is being ended")
    say_next(f"service pipeline watch {run_id}", f"service pipeline show {run_id}")


@app.command()
def enable(name: Name, json: Json = False) -> None:
    """Let a pipeline run, on demand and by its schedule."""
    import asyncio

    from bridge.operations.pipelines import definitions

    pipeline = asyncio.run(definitions.enable(service_here(), name))
    say_json(pipeline) if json else say(f"{name} is enabled")


@app.command()
def disable(name: Name, json: Json = False) -> None:
    """Start no more runs of a pipeline; an active run continues."""
    import asyncio

    from bridge.operations.pipelines import definitions

    pipeline = asyncio.run(definitions.disable(service_here(), name))
    say_json(pipeline) if json else say(f"{name} is disabled")


@app.command()
def remove(name: Name, json: Json = False) -> None:
    """Forget a pipeline and its schedule; its runs stay."""
    import asyncio

    from bridge.operations.pipelines import definitions

    asyncio.run(definitions.remove(service_here(), name))
    say_json({"removed": name}) if json else say(f"{name} is forgotten")


def _pairs(words: Sequence[str]) -> dict[str, str]:
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


def _show_pipeline(service: "Service", name: str, *, definition: bool, json: bool) -> None:
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
    say("", *prefix_lines(text.strip("\n")))


def _show_run(service: "Service", run_id: str, *, definition: bool, json: bool) -> None:
    """Print a run, or the definition it was started with."""
    from bridge.operations.pipelines import runs
    from cli.drawing.pipeline import lines

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
    say(f"{quote_name(shown.stage)} {shown.state} attempt {shown.attempt}  {one_line(shown.said, 500)}".rstrip())
    for heading, text in (("output", shown.output), ("stderr", shown.stderr)):
        if text.strip():
            say("", f"{heading}:", *prefix_lines(text))
