"""`service cluster`: prepares a Temporal server of one's own for the service."""

from typing import Annotated

import typer

from cli.output import say, say_json

app = typer.Typer(help="Make a Temporal server of your own ready.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Keep `init`, the only verb, a word to type, so that others can be added."""


@app.command()
def init(
    retention: Annotated[
        str | None, typer.Option(help="How long ended workflows are kept, such as 30d, which is what a new one gets.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make namespace and search attributes where you may; print the commands where you may not. Exit 3 then."""
    from bridge.operations.home import cluster
    from bridge.operations.service import Service

    made = cluster.init(Service.locate(), retention)
    if json:
        say_json(made)
    else:
        say(*made.said, *(["by hand:", *(f"  {line}" for line in made.by_hand)] if made.by_hand else []))
    if made.by_hand:
        raise typer.Exit(3)
