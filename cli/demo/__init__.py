"""`service demo`: see the service work, with no account, key, model or network."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave it running, and print how to look at it.")] = False,
    home: Annotated[
        Path | None, typer.Option(help="Play in this folder, which must be empty or new.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print only the outcome, as JSON.")] = False,
) -> None:
    """Play a tree of jobs whose check fails, and that is planned again and done.

    It has a home, a daemon and a repository of its own in a temporary folder, and leaves nothing behind.
    """
    from cli.demo import playing

    raise typer.Exit(playing.play(home, keep=keep, json=json))
