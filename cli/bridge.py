"""`service bridge`: the HTTP interface for programs."""

from typing import Annotated

import typer

from cli.output import say

app = typer.Typer(help="The HTTP interface for programs.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def serve(
    addr: Annotated[str | None, typer.Option(help="HOST, HOST:PORT, :PORT or [IPV6]:PORT.")] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Listen where other machines reach it, in clear text.")
    ] = False,
) -> None:
    """Serve in the foreground until Ctrl-C; the daemon does so too, in the background."""
    from bridge.http import process
    from bridge.machine import token
    from bridge.operations.service import Service

    service = Service.locate()
    told = f"token: {token.ensure(service.home)}"
    process.serve(service, addr, allow_remote=allow_remote, announce=lambda url: say(f"bridge listens on {url}", told))


@app.command("token")
def token_path(
    rotate: Annotated[bool, typer.Option("--rotate", help="Replace it; the old one opens nothing more.")] = False,
) -> None:
    """Print the path of the token's file, never the token."""
    from activities.settings.home import Home
    from bridge.machine import token

    home = Home.locate()
    say(str(token.rotate(home) if rotate else token.ensure(home)))
