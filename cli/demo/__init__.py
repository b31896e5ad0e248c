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
    """Run a task whose first check fails; its lead then plans again and finishes it.

    The demo has its own home, daemon and repository in a temporary folder, and removes them at the end.
    """
    from cli.demo import playing

    raise typer.Exit(playing.play(home, keep=keep, json=json))
