"""`service dashboard`: the page in a browser."""

from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def dashboard(
    page: Annotated[
        str, typer.Argument(metavar="[JOB|PAGE]", help="A job or tree, or a page as /ui/memory; else what waits.")
    ] = "",
    only_print: Annotated[bool, typer.Option("--print", help="Only print the link.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Only print the link, as JSON.")] = False,
) -> None:
    """Open the dashboard: see and do everything in a browser.

    The link is good once and for five minutes. It begins a session of a week in the browser that opens it, under your
    name; all sessions end with `service bridge token --rotate`.
    """
    from bridge.operations.home import links
    from bridge.operations.service import Service
    from cli.web import open_page

    service = Service.locate()
    open_page(service, links.page_of(service, page), only_print=only_print, json=json)
