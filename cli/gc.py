"""`service gc`: frees disk space."""

from typing import Annotated

import typer

from cli.output import say, say_json, say_table, tell
from cli.sizes import size

app = typer.Typer(add_completion=False, rich_markup_mode=None)

WHAT = {
    "runs": "prompts and output of agents",
    "artifacts": "long prompts, results, what agents handed on",
    "worktrees": "work folders of which all is elsewhere too",
    "logs": "logs that were set aside",
}


@app.command()
def gc(
    older_than: Annotated[
        str, typer.Option(help="What ended longer ago than this, such as 30d or 36h; an hour at least.")
    ] = "30d",
    yes: Annotated[bool, typer.Option("--yes/--dry-run", help="Remove it.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what nothing needs any more and the room it takes, and remove it when told to.

    Trees that run, wait for people or are blocked keep all they have. Rows, branches and backups always stay.
    """
    from bridge.operations.home import reclaim
    from bridge.operations.service import Service

    found = reclaim.reclaim(Service.locate(), older_than, yes=yes)
    if json:
        say_json(found)
    else:
        rows = [(room.what, str(room.count), size(room.bytes), WHAT[room.what]) for room in found.rooms if room.count]
        say_table(("KIND", "THINGS", "SIZE", "WHAT"), rows, f"nothing older than {found.older_than} can go")
        tell(*(f"kept: {why}" for why in found.kept))
        if yes:
            say(f"freed {size(found.bytes)}")
        elif rows:
            say(f"nothing was removed; to free {size(found.bytes)}: service gc --older-than {found.older_than} --yes")
        tell(*(f"error: {problem}" for problem in found.problems))
    if found.problems:
        raise typer.Exit(1)
