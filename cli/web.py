"""Opening the dashboard in a browser, for every command that shows what stands on one of its pages."""

import os
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from cli.output import say, tell

if TYPE_CHECKING:
    from bridge.operations.service import Service

Web = Annotated[bool, typer.Option("--web", help="Open it in the browser instead: the same on the dashboard.")]


def open_page(service: "Service", page: str, *, only_print: bool = False) -> None:
    """Print a link that is good once, and open it where there is a browser."""
    from bridge.operations import dashboard
    from cli.calling import for_people
    from cli.words import actor

    for_people("dashboard")
    link = dashboard.link(service, actor(), page)
    say(link)
    if only_print:
        return
    if _is_elsewhere():
        port = urlsplit(link).port or 80
        tell(
            "The browser is on another machine. There, type this, and open the link:",
            f"  ssh -L {port}:127.0.0.1:{port} {os.uname().nodename}",
        )
        return
    typer.launch(link)


def _is_elsewhere() -> bool:
    """Who has come by ssh, without a display, would get a text browser or nothing."""
    return "SSH_CONNECTION" in os.environ and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
