"""Options and arguments that several commands share."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workflows.model.errors import UsageError
from workflows.text.durations import abbreviate

if TYPE_CHECKING:
    from bridge.operations.service import Service

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Wait = Annotated[bool, typer.Option("--wait", help="Follow it to its end.")]
Pr = Annotated[int | None, typer.Option("--pr", min=1, help="The pull request it belongs to: it starts from its head.")]
Base = Annotated[
    str | None,
    typer.Option("--base", metavar="REF", help="The branch, tag or commit it starts from; HEAD by default."),
]
Issue = Annotated[int | None, typer.Option("--issue", min=1, help="The issue it belongs to.")]

Timeout = Annotated[
    str | None,
    typer.Option(
        callback=lambda typed: abbreviate(typed) if typed else typed,
        metavar="DURATION",
        help="Timeout of each attempt of its root, such as 1h30m; of a pipeline, of each stage.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        metavar="DOLLARS",
        help="Limit of what the whole task may cost; no higher than orchestrate.max_delegation_cost_usd.",
    ),
]
RepoHere = Annotated[
    str | None, typer.Option("--repo", help="OWNER/NAME; by default the repository of the current folder.")
]


def service_here() -> "Service":
    """Open the service of this home. Import its module only here, because help texts don't need it."""
    from bridge.operations.service import Service

    return Service.locate()


def repo_here(service: "Service", named: str | None) -> str:
    """Return the repository's name: the given one, else that of the current folder."""
    from bridge.operations.registry import repos

    return repos.here(service, Path()).name if named is None else named


def token_here(service: "Service") -> str | None:
    """Return the GitHub token from the variable that `[github].token_env` names. It is needed to fetch from private
    repositories.
    """
    return os.environ.get(service.settings.github.token_env, "").strip() or None


def text_of(typed: str) -> str:
    """Return a text argument; for `-`, read the text from standard input."""
    if typed != "-":
        return typed
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        encoding = sys.stdin.encoding.lower()
        if encoding == "utf-8":
            raise UsageError("standard input is not UTF-8 text") from None
        raise UsageError(f"standard input is read as {encoding}", "export PYTHONIOENCODING=utf-8") from None
