"""`service result`: checks, describes and shows the result object with which an agent ends its job."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from workflows.contract.parse import Rejected

app = typer.Typer(
    help="Check, describe and show the result object that ends a job.", no_args_is_help=True, rich_markup_mode=None
)

File = Annotated[
    str, typer.Argument(metavar="[FILE|-]", help="A file with an agent's output; `-` or none reads standard input.")
]


@app.command()
def check(
    file: File = "-",
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")] = False,
) -> None:
    """Print the result object found in an agent's output, or its faults with exit status 1."""
    import json

    from bridge.operations.jobs import results
    from cli.drawing.output import say_json_text, tell
    from workflows.contract.canonical import canonical_json
    from workflows.contract.parse import Rejected

    reading = results.check(_read(file))
    if as_json:
        say_json_text(json.dumps(results.report(reading), ensure_ascii=False))
    elif not isinstance(reading, Rejected):
        for notice in reading.notices:
            tell(f"note: {notice.message}")
        if reading.not_kept:
            tell(f"note: {results.too_wide(reading)}")
        say_json_text(canonical_json(reading.result))
    if isinstance(reading, Rejected):
        raise _refuse(reading, silent=as_json)


@app.command()
def schema(
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the agents' instructions instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, also of the agents' instructions.")] = False,
) -> None:
    """Print the JSON Schema of the result object."""
    from bridge.operations.jobs import results
    from cli.drawing.output import say, say_json

    if not prompt:
        say_json(results.result_schema())
    elif as_json:
        say_json({"prompt": results.explain()})
    else:
        say(*results.explain().removesuffix("\n").split("\n"))


@app.command()
def render(
    file: File = "-",
    as_json: Annotated[bool, typer.Option("--json", help="Print the comment or the faults as JSON.")] = False,
) -> None:
    """Print a result as the comment that would be posted, or its faults with exit status 1."""
    from bridge.operations.jobs import results
    from cli.drawing.output import say_document, say_json
    from workflows.contract.parse import Rejected

    rendered = results.render(_read(file))
    if isinstance(rendered, Rejected):
        if as_json:
            say_json({"faults": [fault.message for fault in rendered.faults]})
        raise _refuse(rendered, silent=as_json)
    say_json({"comment": rendered}) if as_json else say_document(rendered)


def _refuse(rejected: "Rejected", *, silent: bool = False) -> typer.Exit:
    from cli.drawing.output import tell

    tell(*(() if silent else (fault.message for fault in rejected.faults)))
    return typer.Exit(1)


def _read(file: str) -> bytes:
    import sys
    from pathlib import Path

    from workflows.model.errors import NotFoundError, UsageError

    if file != "-":
        try:
            return Path(file).read_bytes()
        except FileNotFoundError:
            raise NotFoundError(f"there is no file {file}", "service result check FILE") from None
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    if sys.stdin.isatty():
        hint = "service result check FILE   (or pipe the output of an agent into: service result check -)"
        raise UsageError("no file is given and standard input is a terminal", hint)
    return sys.stdin.buffer.read()
