"""`service backup`: a copy of the home, made while the service runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import say, say_json
from cli.sizes import size

if TYPE_CHECKING:
    from bridge.operations.home.backup import Backup

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Copy the home into a folder: store, Temporal's database, artifacts, settings, keys. Nothing has to stop."""
    from bridge.operations.home import backup
    from bridge.operations.service import Service
    from cli.progress import progress
    from cli.waiting import if_interrupted

    with if_interrupted("nothing was copied", "service backup FOLDER"), progress("copying the home") as step:
        made = backup.make(Service.locate(), folder.absolute(), step)
    if json:
        say_json(made)
        return
    say(*lines(made, f"copied {made.home} to {made.folder}"))
    say("it holds prompts and keys: keep it private", "bring it back: service restore FOLDER")


def lines(made: "Backup", first: str) -> list[str]:
    """Return the backup's content and the notes on it."""
    from cli.words import clock

    held = f"{made.files} files, {size(made.bytes)}, version {made.version}"
    return [first, f"{held}, as of {clock(made.made_at.timestamp())}", *(f"note: {note}" for note in made.notes)]
