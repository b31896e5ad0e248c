"""The verbs of `service daemon` that are about starting it with the machine."""

import shlex
from typing import Annotated

import typer

from cli.output import say

Show = Annotated[bool, typer.Option("--show", help="Print the file; change nothing.")]


def install(show: Show = False) -> None:
    """Have the daemon started at login, and again when it dies: a systemd user unit, or launchd on macOS."""
    from activities.settings.home import Home
    from bridge.daemon import installation

    home = Home.locate()
    wanted = installation.planned(home)
    if show:
        say(f"# {wanted.path}", *wanted.text.rstrip().split("\n"))
        return
    if installation.install(home, wanted):
        say(f"wrote {wanted.path}; the daemon starts with your session", "next: service daemon status")
        return
    typed = [f"  {shlex.join(each)}" for each in wanted.commands]
    say(f"wrote {wanted.path}", "no manager of your session answers here; where one does, type:", *typed)


def uninstall() -> None:
    """Stop the daemon and have it started no more. Nothing of the home is removed."""
    from activities.settings.home import Home
    from bridge.daemon import installation

    wanted = installation.planned(Home.locate())
    stopped = installation.uninstall(wanted)
    say(f"removed {wanted.path}" + ("" if stopped else "; no manager of your session answers here"))
