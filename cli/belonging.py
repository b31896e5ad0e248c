"""The options of every command that starts work: what it belongs to, begins from, may take (rulings L1, O1, A10)."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bridge.operations.service import Service

Pr = Annotated[int | None, typer.Option("--pr", min=1, help="The pull request it belongs to: it starts from its head.")]
Base = Annotated[
    str | None,
    typer.Option(
        "--base", metavar="REF", help="The branch, tag or commit it starts from; what is checked out if left out."
    ),
]
Issue = Annotated[int | None, typer.Option("--issue", min=1, help="The issue it belongs to.")]

Timeout = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="How long each attempt of its root may take, such as 1h30m; of a pipeline, each stage."
    ),
]


def token_here(service: "Service") -> str | None:
    """Return the token of `[github].token_env` from the environment: it fetches heads of private repositories."""
    return os.environ.get(service.settings.github.token_env, "").strip() or None
