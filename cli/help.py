"""`service help`: the pages of the manual, and the usage of every command."""

import os
import sys
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)
BOLD = 1


@app.command()
def help_(
    topic: Annotated[list[str] | None, typer.Argument(help="A page, or a command: trees, job, job tree.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read a page of the manual, or how a command is typed; without a word, list the pages."""
    from cli import manual

    words = topic or []
    name = " ".join(words)
    if not words:
        _index(as_json=json)
    elif name in {page.name for page in manual.pages()}:
        _page(name, as_json=json)
    else:
        _command(words, as_json=json)


def _index(*, as_json: bool) -> None:
    from cli import manual
    from cli.output import say, say_json

    if as_json:
        say_json([{"topic": page.name, "group": page.group, "says": page.says} for page in manual.pages()])
    else:
        say(*manual.index())


def _page(name: str, *, as_json: bool) -> None:
    from cli import manual
    from cli.output import coloured, page, say, say_json

    text = manual.text(name)
    if as_json:
        say_json({"topic": name, "text": text})
    elif sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from cli import markdown_lines

        strong = None if os.environ.get("NO_COLOR") else BOLD
        lines = markdown_lines.lines(text, markdown_lines.width())
        page(coloured(line, strong if is_heading else None) for line, is_heading in lines)
    else:
        say(*text.rstrip("\n").split("\n"))


def _command(words: list[str], *, as_json: bool) -> None:
    """Print the help of a command, as `--help` behind it does."""
    from cli import main, manual
    from cli.output import say_json

    wrong = manual.not_a_command(words)
    if wrong is not None:
        raise wrong
    if as_json:
        say_json({"command": " ".join(words), "text": manual.help_text(words)})
    else:
        raise typer.Exit(main.main([*words, "--help"]))
