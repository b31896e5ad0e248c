"""`service restore`: restores a home from a backup."""

from pathlib import Path
from typing import Annotated

import typer

from cli.output import say, say_json

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def restore(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What `service backup` made.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Put a backup in the place of an empty home. Its trees go on from where they were once the daemon is started."""
    from activities.settings.home import Home
    from bridge.operations.home import backup
    from cli.backup import lines
    from cli.progress import progress
    from cli.waiting import if_interrupted

    with if_interrupted("the home is as it was", "service restore FOLDER"), progress() as step:
        made = backup.restore(Home.locate(), folder.absolute(), step)
    if json:
        say_json(made)
        return
    say(*lines(made, f"restored {made.home} from {made.folder}"), "next: service daemon start")
