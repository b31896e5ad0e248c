"""`service help`: the pages of the manual (`topics`, listed in its README.md), and the usage of every command."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.invocation.aliases import expand
from cli.invocation.options import Json
from workflows.model.errors import NotFoundError

FOLDER = Path(__file__).with_name("topics")
_ENTRY = re.compile(r"- \[([\w-]+)\]\(\1\.md\): (.+)")
_GROUP = "## "


@dataclass(frozen=True)
class Topic:
    """A page of the manual: its name, its group, and its subject."""

    name: str
    group: str
    says: str


@cache
def pages() -> tuple[Topic, ...]:
    """Return all pages, in the order of the list."""
    return tuple(_entries((FOLDER / "README.md").read_text(encoding="utf-8")))


def _entries(text: str) -> Iterator[Topic]:
    group = ""
    for line in text.splitlines():
        if line.startswith(_GROUP):
            group = line.removeprefix(_GROUP)
        elif entry := _ENTRY.fullmatch(line):
            yield Topic(entry[1], group, entry[2])


def index() -> Iterator[str]:
    """Yield the list of pages as lines."""
    width = max(len(page.name) for page in pages())
    group = ""
    for page in pages():
        if page.group != group:
            yield from (["", page.group] if group else [page.group])
            group = page.group
        yield f"  {page.name.ljust(width)}  {page.says}"
    yield from ("", "Read a page: service help TOPIC", "How a command is typed: service help COMMAND")


def text(name: str) -> str:
    """Return one page, as Markdown."""
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def not_a_command(words: Sequence[str]) -> NotFoundError | None:
    """Return the error for words that are no command, with the nearest page or command; None for a command."""
    from cli.main import near_commands, walk

    path = walk(words)[1]
    if path == list(words):
        return None
    wrong = " ".join(words[: len(path) + 1])
    near = [] if path else get_close_matches(words[0], [page.name for page in pages()], n=1)
    near += [name.removeprefix("service ") for name, _ in near_commands(words)]
    what = f"there is no command '{wrong}'" if path else f"there is no page and no command '{wrong}'"
    return NotFoundError(what, " ".join(["service help", *(near[:1] or path)]))


def help_text(words: Sequence[str]) -> str:
    """Return the `--help` text of a command."""
    from cli.main import command_of, root

    command: Any = root()
    context = command.context_class(command, info_name="service", **command.context_settings)
    for word in words:
        command = getattr(command, "commands", {}).get(word) or command_of(word)
        context = command.context_class(command, info_name=word, parent=context)
    return str(command.get_help(context))


help_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@help_app.command()
def help_(
    topic: Annotated[list[str] | None, typer.Argument(help="A page, or a command: trees, job, job tree.")] = None,
    json: Json = False,
) -> None:
    """Show a page of the manual or a command's usage; without an argument, list the pages."""
    words = topic or []
    name = " ".join(words)
    if not words:
        _index(as_json=json)
    elif name in {page.name for page in pages()}:
        _page(name, as_json=json)
    else:
        _command(expand(words), as_json=json)


def _index(*, as_json: bool) -> None:
    from cli.drawing.output import say, say_json

    if as_json:
        from cli import commands
        from cli.invocation import exit_codes

        topics = [{"topic": page.name, "group": page.group, "says": page.says} for page in pages()]
        catalogue = {"commands": list(commands.every()), "options": commands.options_of_all()}
        say_json({"topics": topics, **catalogue, "exit_codes": exit_codes.EXIT_CODES})
    else:
        say(*index())


def _page(name: str, *, as_json: bool) -> None:
    from cli.drawing.output import page, say, say_json

    if as_json:
        say_json({"topic": name, "text": text(name)})
    elif sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from cli.drawing import markdown

        page(markdown.lines(text(name), markdown.width()))
    else:
        say(*text(name).rstrip("\n").split("\n"))


def _command(words: list[str], *, as_json: bool) -> None:
    """Print what the command's `--help` prints."""
    from cli import main
    from cli.drawing.output import say_json

    wrong = not_a_command(words)
    if wrong is not None:
        raise wrong
    if as_json:
        from cli import commands

        path = " ".join(words)
        known = next((vars(each) for each in commands.every() if each.command == path), {"command": path})
        say_json(known | {"text": help_text(words)})
    else:
        raise typer.Exit(main.main([*words, "--help"]))
