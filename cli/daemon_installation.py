"""The verbs of `service daemon` that install it as a service of the user's session."""

import shlex
from typing import Annotated

import typer

from cli.output import say, say_json

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Show = Annotated[bool, typer.Option("--show", help="Print the file; change nothing.")]


def install(show: Show = False, json: Json = False) -> None:
    """Have the daemon started at login, and again when it dies: a systemd user unit, or launchd on macOS."""
    from activities.settings.home import Home
    from bridge.daemon import installation

    home = Home.locate()
    wanted = installation.planned(home)
    told = {"path": str(wanted.path), "text": wanted.text, "commands": [list(each) for each in wanted.commands]}
    if show:
        say_json(told) if json else say(f"# {wanted.path}", *wanted.text.rstrip().split("\n"))
        return
    loaded = installation.install(home, wanted)
    if json:
        say_json(told | {"loaded": loaded})
        return
    if loaded:
        say(f"wrote {wanted.path}; the daemon starts with your session", "next: service daemon status")
        return
    typed = [f"  {shlex.join(each)}" for each in wanted.commands]
    say(f"wrote {wanted.path}", "no manager of your session answers here; where one does, type:", *typed)


def uninstall(json: Json = False) -> None:
    """Stop the daemon and have it started no more. Nothing of the home is removed."""
    from activities.settings.home import Home
    from bridge.daemon import installation

    wanted = installation.planned(Home.locate())
    stopped = installation.uninstall(wanted)
    if json:
        say_json({"removed": str(wanted.path), "stopped": stopped})
        return
    say(f"removed {wanted.path}" + ("" if stopped else "; no manager of your session answers here"))
