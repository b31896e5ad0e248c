"""`service result`: check, describe and show the object that ends a job."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from workflows.contract.parse import Rejected

app = typer.Typer(help="Check, describe and show the result object that ends a job.", no_args_is_help=True)

File = Annotated[str, typer.Argument(metavar="[FILE|-]", help="An agent's output; - or nothing reads standard input.")]


@app.command()
def check(
    file: File = "-",
    as_json: Annotated[bool, typer.Option("--json", help="Say the outcome as one JSON object.")] = False,
) -> None:
    """Print the result found in an output, or every fault of it (exit 1)."""
    import json

    from bridge.operations import results
    from workflows.contract.canonical import canonical_json
    from workflows.contract.parse import Rejected

    reading = results.check(_read(file))
    if as_json:
        typer.echo(json.dumps(results.report(reading), ensure_ascii=False))
    elif not isinstance(reading, Rejected):
        for notice in reading.notices:
            typer.echo(f"note: {notice.message}", err=True)
        typer.echo(canonical_json(reading.result))
    if isinstance(reading, Rejected):
        raise _refuse(reading, silent=as_json)


@app.command()
def schema(
    prompt: Annotated[bool, typer.Option("--prompt", help="Print what agents are told instead.")] = False,
) -> None:
    """Print the JSON Schema of the result object."""
    import json

    from bridge.operations import results

    typer.echo(results.explain() if prompt else json.dumps(results.schema(), indent=2), nl=not prompt)


@app.command()
def render(file: File = "-") -> None:
    """Print the comment a result would be posted as, or every fault of it (exit 1)."""
    from bridge.operations import results
    from workflows.contract.parse import Rejected

    rendered = results.render(_read(file))
    if isinstance(rendered, Rejected):
        raise _refuse(rendered)
    typer.echo(rendered, nl=False)


def _refuse(rejected: "Rejected", *, silent: bool = False) -> typer.Exit:
    for fault in () if silent else rejected.faults:
        typer.echo(fault.message, err=True)
    return typer.Exit(1)


def _read(file: str) -> bytes:
    import sys
    from pathlib import Path

    from workflows.model.errors import NotFoundError, UsageError

    if file != "-":
        try:
            return Path(file).read_bytes()
        except FileNotFoundError:
            raise NotFoundError(f"there is no file {file}") from None
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    if sys.stdin.isatty():
        hint = "service result check FILE   (or pipe the output of an agent into: service result check -)"
        raise UsageError("no file is given and standard input is a terminal", hint)
    return sys.stdin.buffer.read()
