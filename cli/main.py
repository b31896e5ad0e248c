"""The entry point: runs the typed command, and turns errors into a sentence and an exit code (ruling K6)."""

import gc
import importlib
import os
import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cli.invocation.aliases import ALIASES, expand
from cli.invocation.calling import for_people
from cli.invocation.help_texts import dress, write_panels
from cli.invocation.pasted import read_pasted
from cli.invocation.permitted import SERVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PANELS = {
    "Begin": {
        "init": "set up this repository and run a first job",
        "demo": "see it work, with no account, key or model",
        "dashboard": "open the dashboard in the browser",
        "help": "read the manual, and how a command is typed",
    },
    "Have work done": {
        "agent": "register agents, and ask them",
        "orchestrate": "run a built-in recipe of several workers",
        "pipeline": "register pipelines, run them, by hand or on a schedule",
    },
    "See and decide": {
        "attention": "list what needs you",
        "resume": "answer a task's questions, or decide about failures",
        "job": "list, show, merge, retry and end jobs and their tasks",
        "memory": "write, confirm and recall what agents should know",
        "spend": "show what was spent, by day, agent, repository and model",
        "result": "check, explain and render result objects",
    },
    "Set up": {
        "repo": "register repositories",
        "runtime": "see which programs can do the work here",
        "config": "check and show the settings",
        "mcp": "let Claude Code, Codex and other tools use the service",
        "github": "show and preview what is written on pull requests and issues",
        "completion": "print a completion script for your shell",
    },
    "Keep it running": {
        "daemon": "run the server, the worker and the bridge",
        "doctor": "check everything that the service depends on",
        "gc": "free disk space",
        "backup": "copy the home, while the service runs",
        "restore": "restore a backup into a new home",
        "bridge": "run the HTTP interface for programs, and manage its tokens",
        "cluster": "prepare a Temporal server of your own",
        "host": "manage the hosts that share the work",
    },
}
"""The nouns under their headings in `service --help`."""
NOUNS = {noun: says for panel in PANELS.values() for noun, says in panel.items()}
_SHARED = {
    **dict.fromkeys(("backup", "restore", "gc", "config", "cluster"), "home"),
    **dict.fromkeys(("doctor", "runtime"), "health"),
    "help": "manual",
    "orchestrate": "agent",
}
"""Maps nouns to their modules where the names differ."""

PAGED = {
    *("agent list", "agent show", "attention", "config show", "daemon install"),
    *("github comment-preview", "github status", "host list", "host show"),
    *("job branches", "job events", "job list", "job log", "job prompt", "job reviews", "job show", "job tree"),
    *("memory list", "memory recall", "memory show", "pipeline list", "pipeline runs", "pipeline show"),
    *("repo list", "result render", "result schema", "runtime check", "runtime list", "spend"),
}
_LASTING = ("watch", "follow", "web", "whole", "raw")
"""Options whose output is printed at once, not collected for the pager."""


class Nouns(TyperGroup):
    """The root group. It lists every noun but imports only the module of the typed one, so that `--help` is fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(NOUNS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        return command_of(cmd_name) if cmd_name in NOUNS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels = PANELS | {"Aliases": {alias: f"service {path}" for alias, path in ALIASES.items()}}
        write_panels(formatter, {heading: list(rows.items()) for heading, rows in panels.items()})


@cache
def command_of(noun: str) -> TyperCommand | TyperGroup:
    """Return the command of a noun, with all its verbs and options."""
    from activities.runs import service_process

    service_process.where_nothing_is_set_up()
    shared = _SHARED.get(noun)
    typed: typer.Typer = getattr(importlib.import_module(f"cli.{shared or noun}"), f"{noun}_app" if shared else "app")
    typed._add_completion = False  # Typer's own completion knows less
    command = typer.main.get_command(typed)
    command.name = noun
    dress(command, noun)
    for path, leaf in leaves(command, noun):
        leaf.callback = _check_permission(path, _page_output(path, read_pasted(leaf, leaf.callback)))
    return command  # type: ignore[return-value]


def leaves(command: Any, path: str) -> "Iterator[tuple[str, Any]]":
    """Yield every runnable command below a noun, with its path after `service`."""
    if getattr(command, "invoke_without_command", True):
        yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from leaves(child, f"{path} {name}")


def walk(words: "Sequence[str]") -> "tuple[Any, list[str]]":
    """Return the command or group that these words begin with, and its path; without words, the root."""
    if not words or words[0] not in NOUNS:
        return root(), []
    command, path = command_of(words[0]), [words[0]]
    for word in words[1:]:
        below = getattr(command, "commands", {})
        if word not in below:
            break
        command = below[word]
        path.append(word)
    return command, path


def help_of(words: "Sequence[str]") -> str:
    """Return the command line that prints help for the command these words begin with."""
    return " ".join(["service", *walk(words)[1], "--help"])


def near_commands(words: "Sequence[str]") -> list[tuple[str, str]]:
    """Return the commands that were probably meant by these unknown words: each alone, and with its arguments."""
    from cli.invocation import suggestions

    known = [path for noun in NOUNS for path, leaf in leaves(command_of(noun), noun) if not leaf.hidden]
    group = len(walk(words)[1])
    return suggestions.near_commands(words, group, [*known, *NOUNS, *(() if group else ALIASES)])


def _check_permission(path: str, carry_out: "Callable[..., Any]") -> "Callable[..., Any]":
    """Wrap the command so that it is refused to agents who may not call it. The caller is identified only if that
    matters.
    """
    if path in SERVED:
        return carry_out

    @wraps(carry_out)
    def refuse_or_run(**values: Any) -> Any:
        for_people(path)
        return carry_out(**values)

    return refuse_or_run


def _page_output(path: str, carry_out: "Callable[..., Any]") -> "Callable[..., Any]":
    """Wrap the command so that its output is collected, and paged at its end."""
    if path not in PAGED:
        return carry_out

    @wraps(carry_out)
    def collect(**values: Any) -> Any:
        from cli.drawing.output import in_pages
        from cli.drawing.screens import can_move

        if any(values.get(each) for each in _LASTING) or not can_move(sys.stdout):
            return carry_out(**values)
        with in_pages():
            return carry_out(**values)

    return collect


app = typer.Typer(
    cls=Nouns,
    name="service",
    help="Coding agents that work as a team: durable, bounded, never lost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from cli.drawing.output import say

        say(f"service {version('delegation-service')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def root() -> Any:
    """Return the root command."""
    command = typer.main.get_command(app)
    dress(command, "")
    return command


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code. Only bugs raise."""
    from cli.drawing.output import remember_words, tell_error, tell_fault
    from cli.invocation.exit_codes import INTERRUPTED
    from cli.invocation.faults import tell_interrupted, tell_misuse
    from workflows.model.errors import ServiceError, UsageError

    words = expand(sys.argv[1:] if arguments is None else arguments)
    remember_words(words)
    command = root()
    try:
        code = command(words, prog_name="service", standalone_mode=False)
        return tell_interrupted() if code == INTERRUPTED else code if isinstance(code, int) else 0
    except ServiceError as error:
        if error.correction:
            from cli.invocation.suggestions import correct

            error.hint = correct(words, *error.correction) or error.hint
        if isinstance(error, UsageError) and not error.hint:
            error.hint = help_of(words)
        tell_error(error)
        return error.exit_code
    except typer.Abort:
        tell_fault("no answer was given, so nothing was done", "aborted", [])
        return 1
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except typer.TyperException as misuse:
        message, commands = _suggest(misuse, words)
        return tell_misuse(misuse, message, commands or [help_of(words)])


def _suggest(misuse: typer.TyperException, words: "Sequence[str]") -> tuple[str, list[str]]:
    """Return the message for an unknown command or option, and what was probably meant; "" for other errors."""
    from cli.invocation import suggestions
    from cli.invocation.examples import EXAMPLES
    from cli.invocation.faults import wrong_number

    message = misuse.format_message()
    if message.startswith("No such"):
        sentence, commands = suggestions.advice(words)
        if sentence:
            return sentence, list(commands)
    if not message.startswith("No such command") and (job_command := _of_a_job(words)):
        return f"`service {' '.join(walk(words)[1])}` takes no job", [job_command]
    if message.startswith("Got unexpected extra argument"):
        return _suggest_for_extra(message, words)
    if message.startswith("No such command"):
        near = near_commands(words)
        names = " or ".join(f"'{name}'" for name, _ in near)
        unknown = f"No such command '{words[len(walk(words)[1])]}'."
        return f"{unknown} Did you mean {names}?" if near else unknown, [each for _, each in near]
    if message.startswith("Missing"):
        example = "service job list" if "'JOB" in message else EXAMPLES[" ".join(walk(words)[1])]
        return "", [example, help_of(words)]
    if refused := wrong_number(misuse):
        command = suggestions.with_number(words, refused[1])
        return refused[0], [command] if command else []
    option = getattr(misuse, "option_name", None)
    if option and message.startswith("No such option"):
        from workflows.contract.faults import nearest

        parameters = walk(words)[0].params
        known = [name for each in parameters for name in (*each.opts, *each.secondary_opts)]
        if meant := suggestions.with_known_option(words, option, known, [each.metavar for each in parameters]):
            return f"No such option: {option}.", [meant]
        if near_option := nearest(option, [name for name in known if name.startswith("--")] + ["--help"]):
            command = suggestions.correct(words, option, near_option)
            return f"No such option: {option}. Did you mean {near_option}?", [command] if command else []
    return "", []


def _of_a_job(words: "Sequence[str]") -> str:
    """Return the command that was meant if a job's id stands behind a command that takes none; else ""."""
    from cli.invocation import suggestions

    takes_one = any((parameter.metavar or "").startswith("JOB") for parameter in walk(words)[0].params)
    return "" if takes_one else suggestions.of_a_job(words)


def _suggest_for_extra(message: str, words: "Sequence[str]") -> tuple[str, list[str]]:
    """Return the message for more words than a command takes: a text without quotes, or just too many."""
    from cli.invocation import suggestions

    command, path = walk(words)
    names = [parameter.metavar for parameter in command.params if parameter.param_type_name == "argument"]
    if not names or names[-1] not in suggestions.FREE_TEXTS:
        extra = message.partition(" (")[2].removesuffix(")")
        rest = suggestions.command(*(word for word in words if word not in extra.split())) if not names else ""
        return f"unexpected extra argument{'s' if ' ' in extra else ''}: {extra}", [rest] if rest else []
    flags = {name for parameter in command.params if getattr(parameter, "is_flag", False) for name in parameter.opts}
    plain, options = suggestions.split(words[len(path) :], flags)
    place = 0 if path[0] == "agent" and not _is_agent(plain[0]) else len(names) - 1
    typed = suggestions.command(*path, *plain[:place], " ".join(plain[place:]), *options)
    return f"put the {names[-1].lower()} in quotes", [typed] if typed else []


def _is_agent(name: str) -> bool:
    from activities.runtimes.known_runtimes import PROGRAMS, RUNTIMES
    from bridge.operations.registry import agents
    from cli.invocation.options import service_here

    return name in {*(agent.worker.name for agent in agents.every(service_here())), *RUNTIMES, *PROGRAMS}


def run() -> None:
    """Run the command in this process. Exit by `os._exit`: Temporal's threads can crash an orderly exit."""
    gc.set_threshold(500_000)  # most commands end before a collection is worth its time
    os._exit(run_to_code())


def run_to_code() -> int:
    """Run the typed command, flush its output, and return its exit code. Never raises."""
    from cli.drawing.output import flush
    from cli.invocation.faults import answer, open_streams

    open_streams()
    try:
        code = main()
        flush()
    except BaseException as fault:
        code = answer(fault)
    return code


if __name__ == "__main__":
    run()
