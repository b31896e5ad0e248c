"""`service completion`: scripts for completion in a shell."""

from typing import Annotated

import typer

app = typer.Typer(help="Have the shell complete what you type.", no_args_is_help=True, rich_markup_mode=None)
Install = Annotated[bool, typer.Option("--install", help="Write it to its usual place instead of printing it.")]


@app.command()
def bash(install: Install = False) -> None:
    """Print it for bash; or: source <(service completion bash)."""
    _give("bash", install)


@app.command()
def zsh(install: Install = False) -> None:
    """Print it for zsh; or, after compinit: source <(service completion zsh)."""
    _give("zsh", install)


@app.command()
def fish(install: Install = False) -> None:
    """Print it for fish; or: service completion fish | source."""
    _give("fish", install)


@app.command(hidden=True)
def candidates(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Print what the last of these words can become, a line each; the scripts ask this."""
    from cli import candidates as found
    from cli.output import say

    if lines := [f"{word} {what}".rstrip() for word, what in found.candidates(words or [])]:
        say(*lines)


def _give(shell: str, install: bool) -> None:
    from cli import completion_scripts
    from cli.output import say

    if not install:
        say(*completion_scripts.script(shell).rstrip("\n").split("\n"))
        return
    path, lines = completion_scripts.install(shell)
    say(f"wrote {path}", *(["add to your start-up file:", *(f"  {line}" for line in lines)] if lines else []))
    say("then open a new shell")
