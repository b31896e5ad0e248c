"""The options that say what work belongs to on GitHub (ruling L1)."""

from typing import Annotated

import typer

Pr = Annotated[int | None, typer.Option("--pr", min=1, help="The pull request it belongs to: it starts from its head.")]
Issue = Annotated[int | None, typer.Option("--issue", min=1, help="The issue it belongs to.")]
