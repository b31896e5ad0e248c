"""`service dashboard`: the page in a browser."""

from typing import Annotated

import typer

from cli.output import say

app = typer.Typer(rich_markup_mode=None)


@app.command()
def dashboard(
    page: Annotated[str, typer.Argument(help="A job or tree to open; else what waits for you.")] = "",
    show: Annotated[bool, typer.Option("--print", help="Only print the link.")] = False,
) -> None:
    """Open the dashboard in a browser, by a link that is good once and for five minutes."""
    from bridge.operations import dashboard
    from bridge.operations.service import Service
    from cli.words import actor

    link = dashboard.link(Service.locate(), actor(), page)
    say(link)
    if not show:
        typer.launch(link)
