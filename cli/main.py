"""The entry: finds the noun, runs the verb, turns faults into one sentence and an exit code (ruling K6)."""

import importlib
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

NOUNS = {
    "agent": "register agents, and ask them",
    "attention": "what waits for a person",
    "bridge": "the HTTP interface for programs",
    "cluster": "make a Temporal server of your own ready",
    "config": "check and show the settings",
    "daemon": "run the server, the worker and the bridge",
    "dashboard": "the page where you see and do all of it",
    "doctor": "look at everything the service stands on",
    "github": "what is read and written on pull requests and issues",
    "job": "look at jobs and trees, end them, run parts of them again",
    "memory": "write, confirm and recall what agents should know",
    "orchestrate": "run a built-in recipe of several workers",
    "pipeline": "register pipelines, run them, by hand or on a schedule",
    "repo": "register repositories",
    "resume": "answer a tree's questions, decide about its failures",
    "result": "check, explain and render result objects",
    "runtime": "see which programs can do the work here",
    "spend": "what was spent, by day, agent, repository and model",
}


class Nouns(TyperGroup):
    """Lists every noun, imports only the one that is used: `--help` stays instant."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(NOUNS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        return command_of(cmd_name) if cmd_name in NOUNS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(NOUNS.items()))


@cache
def command_of(noun: str) -> TyperCommand | TyperGroup:
    """The command of one noun, with all its verbs and options."""
    from activities import log_lines

    log_lines.where_nothing_is_set_up()
    module = importlib.import_module(f"cli.{noun}")
    command = typer.main.get_command(module.app)
    command.name = noun
    return command  # type: ignore[return-value]


app = typer.Typer(
    cls=Nouns,
    name="service",
    help="Coding agents that work as a team: durable, bounded, never lost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _root() -> None:
    pass


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code; nothing but a bug raises."""
    from cli.output import tell, tell_error
    from workflows.model.errors import ServiceError

    command = typer.main.get_command(app)
    try:
        code = command(list(arguments) if arguments is not None else None, prog_name="service", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except ServiceError as error:
        tell_error(error)
        return error.exit_code
    except typer.Abort:
        tell("Aborted!")
        return 1
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except typer.TyperException as misuse:
        return _misused(misuse)


def _misused(misuse: Any) -> int:
    """As Typer says it, through our way out: it quotes what was typed."""
    from io import StringIO

    from cli.output import tell_misuse

    said = StringIO()
    misuse.show(file=said)
    tell_misuse(said.getvalue(), misuse.format_message())
    return int(misuse.exit_code)


def run() -> None:
    """Run the command in this process. It leaves by `os._exit`: Temporal's threads can crash an orderly exit."""
    os._exit(run_to_code())


def run_to_code() -> int:
    """Run the command that was typed, and return its exit code once all it said is written."""
    from cli.output import tell_bug

    sys.excepthook = tell_bug
    code = main()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except BrokenPipeError:
                code = code or 0
    return code


if __name__ == "__main__":
    run()
