"""`service repo`: the repositories jobs may work on."""

from pathlib import Path
from typing import Annotated

import typer

from cli.drawing.output import say, say_json, say_table
from cli.drawing.tables import Column
from cli.invocation.options import Json, service_here

app = typer.Typer(help="Register repositories.", no_args_is_help=True, rich_markup_mode=None)
LISTED = ("NAME", Column("PATH", least=20), Column("HOST", leaves=2), Column("GITHUB", leaves=1))
SWEPT = (Column("REPOSITORY", leaves=1), "KIND", Column("NAME", least=20), Column("WHAT", least=16))


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="OWNER/NAME")],
    path: Annotated[Path, typer.Argument(help="The checkout on this host.")] = Path(),
    github: Annotated[
        str | None,
        typer.Option(help="OWNER/NAME on GitHub; by default read from the checkout's remotes, '' for none."),
    ] = None,
    json: Json = False,
) -> None:
    """Register a repository, or point its name at another checkout."""
    from bridge.operations.registry import repos

    repo = repos.add(service_here(), name, path, github)
    on_github = f"; on GitHub it is {repo.github}" if repo.github else ""
    say_json(repo) if json else say(f"{repo.name} is {repo.path}{on_github}")


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the registered repositories."""
    from bridge.operations.registry import repos

    known = repos.every(service_here())
    if json:
        say_json(known)
    else:
        rows = [(repo.name, repo.path, repo.host, repo.github or "-") for repo in known]
        say_table(LISTED, rows, "no repositories; add one: service repo add OWNER/NAME PATH")


@app.command()
def remove(name: Annotated[str, typer.Argument(help="OWNER/NAME")], json: Json = False) -> None:
    """Forget a repository; its checkout is not touched."""
    from bridge.operations.registry import repos

    repos.remove(service_here(), name)
    say_json({"removed": name}) if json else say(f"{name} is forgotten; the checkout is as it was")


@app.command()
def sweep(
    name: Annotated[str | None, typer.Argument(help="OWNER/NAME; by default all of this host.")] = None,
    yes: Annotated[bool, typer.Option("--yes/--dry-run", help="Remove what can be removed.")] = False,
    json: Json = False,
) -> None:
    """List worktrees, merged branches and locks that killed processes left; never removes work that is nowhere else."""
    from bridge.operations.home import leftovers
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted

    stopped = if_interrupted("what is removed by now is gone, the rest is as it was", "service repo sweep")
    with stopped, progress() as step:
        swept = leftovers.sweep(service_here(), name, yes=yes, step=step)
    if json:
        say_json(swept)
        return
    rows = [(one.repo, "problem", one.problem, "") for one in swept if one.problem]
    rows += [
        (one.repo, left.kind, left.name, f"kept: {left.keep}" if left.keep else "removed" if yes else "can go")
        for one in swept
        for left in one.found
    ]
    say_table(SWEPT, rows, "nothing was left behind")
    if not yes and (count := sum(one.removable for one in swept)):
        say(f"nothing was removed; to remove {count}: service repo sweep {name + ' ' if name else ''}--yes")
