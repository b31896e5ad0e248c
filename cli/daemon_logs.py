"""`service daemon logs`: the logs of the daemon and its members."""

from itertools import chain
from typing import Annotated

import typer

from cli.output import say, say_json_line


def logs(
    member: Annotated[str, typer.Argument(help="server, worker, bridge, github, commands or daemon; else all.")] = "",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="So many of the last lines of each.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added, until Ctrl-C.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object for each line.")] = False,
) -> None:
    """Print the end of the logs in the home; each line says whose it is."""
    from activities.settings.home import Home
    from bridge.daemon import logs as files

    home = Home.locate()
    chosen = [member] if member else files.names(home)
    if not chosen and not json:
        say(f"no logs in {home.logs} yet", "begin: service daemon start")
    width = max(map(len, chosen), default=0)
    ends = ((name, line) for name in chosen for line in files.last(home, name, lines))
    for name, line in chain(ends, files.follow(home, chosen) if follow else ()):
        say_json_line({"member": name, "line": line}) if json else say(f"{name:{width}} | {line}")
