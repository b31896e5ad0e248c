"""`service pipeline`: registers pipelines, runs them, follows their runs."""

from pathlib import Path
from typing import Annotated

import typer

from cli.belonging import Base, Issue, Pr, Timeout, token_here
from cli.drawing.looks import of_state
from cli.drawing.tables import Column
from cli.output import say, say_json, say_table
from cli.web import Web, open_page
from workflows.model.errors import UsageError

app = typer.Typer(help="Register pipelines, and run them.", no_args_is_help=True, rich_markup_mode=None)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="The pipeline's name.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The id that `pipeline run` printed.")]
LISTED = (
    "NAME",
    Column("REPO", least=12, leaves=1),
    Column("ENABLED", look=of_state),
    Column("SCHEDULED", look=of_state),
)
RUNS = (
    "RUN",
    Column("STATE", look=of_state),
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
    """Register a pipeline, or replace the one of its name; runs that go on keep the file they started with."""
    import asyncio

    from bridge.operations.pipelines import definitions
    from bridge.operations.service import Service

    pipeline = asyncio.run(definitions.add(Service.locate(), *definitions.read_file(file)))
    if json:
        say_json(pipeline)
        return
    say(f"{pipeline.name} is registered")
    say(f"run it: service pipeline run {pipeline.name}" if pipeline.enabled else "it is disabled")


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the registered pipelines."""
    from bridge.operations.pipelines import definitions
    from bridge.operations.service import Service

    known = definitions.every(Service.locate())
    if json:
        say_json(known)
        return
    rows = [
        (each.name, each.repo or "-", "yes" if each.enabled else "no", "yes" if each.scheduled else "-")
        for each in known
    ]
    empty = "no pipelines; add one: service pipeline add FILE"
    say_table(LISTED, rows, empty)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|RUN", help="A pipeline, or the id of a run.")],
    stage: Annotated[str | None, typer.Option(help="What this shell stage of the run printed.")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="In an earlier attempt of the stage.")] = None,
    definition: Annotated[bool, typer.Option("--definition", help="Only the file; a run's own.")] = False,
    json: Json = False,
    web: Web = False,
) -> None:
    """Show a pipeline and its file; or a run with its stages; or what a stage printed."""
    from bridge.operations.home import links
    from bridge.operations.pipelines import definitions
    from bridge.operations.service import Service
    from cli import pipeline_view

    service = Service.locate()
    is_run = name.startswith("prun-") and not any(each.name == name for each in definitions.every(service))
    if web:
        open_page(service, (links.page_of_run if is_run else links.page_of_pipeline)(service, name))
    elif stage is not None:
        pipeline_view.show_output(service, name, stage, attempt, json=json)
    elif attempt is not None:
        raise UsageError("--attempt is of a stage: add --stage ID")
    elif is_run:
        pipeline_view.show_run(service, name, definition=definition, json=json)
    else:
        pipeline_view.show_pipeline(service, name, definition=definition, json=json)


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
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end.")] = False,
    json: Json = False,
) -> None:
    """Start a run. While one is active, there is no second."""
    import asyncio

    from bridge.operations.pipelines import definitions
    from bridge.operations.service import Service
    from cli.pipeline_follow import follow
    from cli.pipeline_view import pairs

    service = Service.locate()
    given, token = pairs(payload or []), token_here(service)
    begun = definitions.run(
        service, name, given, pull_request=pr, issue=issue, base=base, stage_timeout=timeout, token=token
    )
    run_id = asyncio.run(begun)
    if wait:
        raise typer.Exit(follow(service, run_id, json=json))
    say_json({"run_id": run_id}) if json else say(run_id, f"watch it: service pipeline watch {run_id}")


@app.command()
def watch(run_id: RunId, json: Json = False) -> None:
    """Follow a run to its end, and show it."""
    from bridge.operations.service import Service
    from cli import pipeline_follow

    raise typer.Exit(pipeline_follow.watch(Service.locate(), run_id, json=json))


@app.command()
def runs(
    pipeline: Annotated[str | None, typer.Option(help="Only runs of this pipeline.")] = None,
    repo: Annotated[str | None, typer.Option(help="Only runs on OWNER/NAME.")] = None,
    state: Annotated[str | None, typer.Option(help="Only runs in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on where an earlier list ended.")] = None,
    json: Json = False,
    web: Web = False,
) -> None:
    """List the newest runs; or show one: `service pipeline show RUN`."""
    from bridge.operations.home import links
    from bridge.operations.pipelines import runs as pipeline_runs
    from bridge.operations.service import Service
    from cli.words import LONGEST, ago, one_line
    from workflows.policy.belongs_to import in_words

    if web:
        service = Service.locate()
        open_page(service, links.page_of_pipeline(service, pipeline) if pipeline else links.RUNS)
        return
    page = pipeline_runs.list_runs(Service.locate(), pipeline_runs.RunFilter(pipeline, repo, state, limit, cursor))
    if json:
        say_json(page)
        return
    rows = [
        (
            each.id,
            each.state,
            each.pipeline,
            in_words(each.pull_request, each.issue) or "-",
            each.trigger,
            each.halt_stage or "-",
            ago(each.started_at),
            one_line(each.reason, LONGEST),
        )
        for each in page.runs
    ]
    say_table(RUNS, rows, "no runs; start one: service pipeline run NAME")
    if page.next_cursor:
        say(f"more: --cursor {page.next_cursor}")


@app.command()
def cancel(run_id: RunId, json: Json = False) -> None:
    """End a run: its commands and agents are stopped."""
    import asyncio

    from bridge.operations.pipelines import definitions
    from bridge.operations.service import Service
    from cli.words import signed

    shown = asyncio.run(definitions.cancel(Service.locate(), run_id, actor=signed()))
    if json:
        say_json(shown)
        return
    say(f"{run_id} is being ended", f"watch it: service pipeline watch {run_id}")


@app.command()
def enable(name: Name, json: Json = False) -> None:
    """Let a pipeline run, by hand and by its schedule."""
    import asyncio

    from bridge.operations.pipelines import definitions
    from bridge.operations.service import Service

    pipeline = asyncio.run(definitions.enable(Service.locate(), name))
    say_json(pipeline) if json else say(f"{name} is enabled")


@app.command()
def disable(name: Name, json: Json = False) -> None:
    """Start no more runs of a pipeline; one that goes on is not touched."""
    import asyncio

    from bridge.operations.pipelines import definitions
    from bridge.operations.service import Service

    pipeline = asyncio.run(definitions.disable(Service.locate(), name))
    say_json(pipeline) if json else say(f"{name} is disabled")


@app.command()
def remove(name: Name, json: Json = False) -> None:
    """Forget a pipeline and its schedule; its runs stay."""
    import asyncio

    from bridge.operations.pipelines import definitions
    from bridge.operations.service import Service

    asyncio.run(definitions.remove(Service.locate(), name))
    say_json({"removed": name}) if json else say(f"{name} is forgotten")
