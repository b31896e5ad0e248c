"""`service dashboard` and `--web`: open pages in a browser."""

import os
import sys
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from cli.drawing.lines import Piece, ScreenLine
from cli.drawing.output import say, say_json, tell
from cli.drawing.screens import screen_of
from cli.invocation.options import service_here

if TYPE_CHECKING:
    from bridge.operations.service import Service

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def dashboard(
    page: Annotated[
        str,
        typer.Argument(
            metavar="[JOB|PAGE]", help="A job or task, or a page such as /ui/memory; by default the page of what waits."
        ),
    ] = "",
    only_print: Annotated[bool, typer.Option("--print", help="Only print the link.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Only print the link, as JSON.")] = False,
) -> None:
    """Open the dashboard: see and do everything in a browser.

    The link works once, within five minutes. The browser that opens it is logged in under your name for a week; all
    sessions end with `service bridge token --rotate`.
    """
    from bridge.operations.home import links

    service = service_here()
    open_page(service, links.page_of(service, page), only_print=only_print, json=json)


Web = Annotated[bool, typer.Option("--web", help="Open its page of the dashboard in the browser instead.")]


def open_page(service: "Service", page: str, *, only_print: bool = False, json: bool = False) -> None:
    """Print a one-time link, and open it if there is a browser."""
    from bridge.operations.home import links
    from cli.drawing.words import actor
    from cli.invocation.calling import for_people

    for_people("dashboard")
    link = links.link(service, actor(), page)
    if json:
        say_json({"link": link})
        return
    say(ScreenLine(Piece(link, link=link)))
    if only_print or not _is_watched():
        return
    if _is_elsewhere():
        port = urlsplit(link).port or 80
        tell(
            "The browser is on another machine. There, type this, and open the link:",
            f"  ssh -L {port}:127.0.0.1:{port} {os.uname().nodename}",
        )
        return
    if not _has_browser():
        tell("There is no browser here to open it in.")
        return
    typer.launch(link)


def address_of(service: "Service", page: str) -> str:
    """Return a page's address for a clickable link; "" if the terminal shows no links or the bridge does not run."""
    from activities.settings import ready

    screen = screen_of(sys.stdout)
    where = ready.dashboard_url(service.home, service.settings.bridge) if screen and screen.links else ""
    return f"{where}{page}" if where else ""


def _is_watched() -> bool:
    """Return whether standard output is a terminal. A file or a pipe gets only the link."""
    return sys.stdout.isatty()


def _has_browser() -> bool:
    """Return whether there is a browser: on Linux only with a display or $BROWSER."""
    return sys.platform != "linux" or bool({"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & set(os.environ))


def _is_elsewhere() -> bool:
    """Return whether this is an ssh session without a display, where only a text browser could open."""
    return "SSH_CONNECTION" in os.environ and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
