"""`service backup`, `restore`, `gc`, `config` and `cluster`: the home, its settings and its Temporal server."""

import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.output import say, say_json, say_table, tell
from cli.drawing.words import work_in_sum
from cli.invocation.options import Json, service_here
from workflows.text.plurals import quantity
from workflows.text.sizes import format_size

if TYPE_CHECKING:
    from bridge.operations.home.backup import Backup

backup_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@backup_app.command()
def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The new folder for the backup.")],
    json: Json = False,
) -> None:
    """Copy the home into a folder: store, Temporal's database, artifacts, settings, keys. Nothing has to stop."""
    from bridge.operations.home import backup
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted

    with if_interrupted("nothing was copied", "service backup FOLDER"), progress("copying the home") as step:
        made = backup.make(service_here(), folder.absolute(), step)
    if json:
        say_json(made)
        return
    say(*_lines(made, f"copied {made.home} to {made.folder}"))
    say("it holds prompts and keys: keep it private", f"bring it back: service restore {quote(str(made.folder))}")


def _lines(made: "Backup", first: str) -> list[str]:
    """Return lines on the backup's content, and its notes."""
    from cli.drawing.words import clock

    held = f"{quantity(made.files, 'file')}, {format_size(made.bytes)}, version {made.version}"
    return [first, f"{held}, as of {clock(made.made_at.timestamp())}", *(f"note: {note}" for note in made.notes)]


restore_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@restore_app.command()
def restore(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that `service backup` made.")],
    json: Json = False,
) -> None:
    """Restore a backup into an empty home. Its tasks continue where they were once the daemon is started."""
    from activities.settings.home import Home
    from bridge.operations.home import backup
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted

    with if_interrupted("the home is as it was", "service restore FOLDER"), progress() as step:
        made = backup.restore(Home.locate(), folder.absolute(), step)
    if json:
        say_json(made)
        return
    home = f"SERVICE_HOME={quote(str(made.home))} " if os.environ.get("SERVICE_HOME") else ""
    say(*_lines(made, f"restored {made.home} from {made.folder}"), f"next: {home}service daemon start")


gc_app = typer.Typer(add_completion=False, rich_markup_mode=None)

WHAT = {
    "runs": "prompts and output of agents",
    "sessions": "what the sessions of codex, claude and kimi hold",
    "artifacts": "long prompts, results, what agents handed on",
    "worktrees": "work folders of which all is elsewhere too",
    "logs": "logs that were set aside",
}


@gc_app.command()
def gc(
    older_than: Annotated[
        str, typer.Option(help="Only what ended longer ago, such as 30d or 36h; an hour at least.")
    ] = "30d",
    yes: Annotated[bool, typer.Option("--yes/--dry-run", help="Remove it.")] = False,
    json: Json = False,
) -> None:
    """List files that are no longer needed and their size; with an option, remove them.

    Tasks that run, wait for people or are blocked keep everything. Rows, branches and backups always stay.
    """
    from bridge.operations.home.gc import reclaim

    garbage = reclaim(service_here(), older_than, yes=yes)
    if json:
        say_json(garbage)
    else:
        rooms = (room for room in garbage.rooms if room.count)
        rows = [(room.what, str(room.count), format_size(room.bytes), WHAT[room.what]) for room in rooms]
        say_table(("KIND", "THINGS", "SIZE", "WHAT"), rows, f"nothing older than {garbage.older_than} can go")
        tell(*(f"kept: {why}" for why in garbage.kept))
        if garbage.unmerged:
            look = f"service repo sweep --older-than {garbage.older_than}"
            tell(f"kept: {work_in_sum(garbage.unmerged)}; to look at them: {look}")
        held = format_size(garbage.bytes)
        if yes:
            say(f"freed {held}")
        elif rows:
            say(f"nothing was removed; to free {held}: service gc --older-than {garbage.older_than} --yes")
        tell(*(f"error: {problem}" for problem in garbage.problems))
    if garbage.problems:
        raise typer.Exit(1)


config_app = typer.Typer(help="Check and show the settings.", no_args_is_help=True, rich_markup_mode=None)


@config_app.command()
def check(json: Json = False) -> None:
    """Read the settings and say what is wrong with them."""
    from activities.settings.home import Home
    from activities.settings.load import load_settings

    home = Home.locate()
    load_settings(home)
    if json:
        say_json({"path": str(home.config), "exists": home.config.exists()})
        return
    say(f"{home.config} is good" if home.config.exists() else f"no {home.config}: the defaults are in force")


@config_app.command()
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Show the origin of each value.")] = False,
    json: Json = False,
) -> None:
    """Print every setting in the form of a `config.toml`, then the changes that running processes have not read yet."""
    from bridge.operations import settings

    service = service_here()
    if json:
        say_json(settings.as_json(service, origins=origin))
    else:
        say(*settings.lines(service, origins=origin))


cluster_app = typer.Typer(help="Make a Temporal server of your own ready.", no_args_is_help=True, rich_markup_mode=None)


@cluster_app.callback()
def _root() -> None:
    """Make Typer keep `init` as a word to type although it is the only verb, so that others can be added."""


@cluster_app.command()
def init(
    retention: Annotated[
        str | None, typer.Option(help="How long ended workflows are kept, such as 30d, which is what a new one gets.")
    ] = None,
    json: Json = False,
) -> None:
    """Create the namespace and search attributes. Where you may not, print the commands for it and exit with 3."""
    from bridge.operations.home import cluster
    from cli.drawing.progress import progress

    with progress("making the Temporal server ready") as step:
        made = cluster.init(service_here(), retention, step)
    if json:
        say_json(made)
    else:
        say(*made.lines)
    if made.by_hand:
        raise typer.Exit(3)
