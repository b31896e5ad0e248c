"""`service repo`: the repositories jobs may work on."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.drawing.lines import of_state
from cli.drawing.output import ask_yes_or_no, say, say_json, say_table, tell
from cli.drawing.tables import Column
from cli.drawing.words import LONGEST, ago, one_line, work_in_sum
from cli.invocation.options import Json, service_here
from workflows.text.sizes import format_size

if TYPE_CHECKING:
    from activities.store.registry.repo_rows import Repo
    from bridge.operations.branches.drops import Choice, DroppedWork, UnmergedWork

app = typer.Typer(help="Register repositories.", no_args_is_help=True, rich_markup_mode=None)
LISTED = ("NAME", Column("PATH", least=20), Column("HOST", leaves=2), Column("GITHUB", leaves=1))
UNMERGED = (
    "TASK",
    Column("STATE", tone=of_state),
    Column("TITLE", least=16, leaves=2, plain=60),
    "ENDED",
    Column("BRANCHES", right=True),
    Column("COMMITS", leaves=1, right=True),
    Column("SIZE", right=True),
    Column("REPOSITORY", leaves=3),
)
SWEPT = (Column("REPOSITORY", leaves=1), "KIND", Column("NAME", least=20), Column("WHAT", least=16))


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="OWNER/NAME")],
    path: Annotated[
        Path | None, typer.Argument(help="The checkout on this host; by default this folder, unless --remote is given.")
    ] = None,
    github: Annotated[
        str | None,
        typer.Option(help="OWNER/NAME on GitHub; by default read from the checkout's remotes, '' for none."),
    ] = None,
    remote: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where every host fetches it from and pushes work to; '' for none."),
    ] = None,
    move: Annotated[bool, typer.Option("--move", help="Take the name over from another host's checkout.")] = False,
    require: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Its hosts must have this; may be repeated, '' for none.")
    ] = None,
    prefer: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="Hosts with it come first; may be repeated, '' for none."),
    ] = None,
    json: Json = False,
) -> None:
    """Register a repository by its checkout or its remote, or change them."""
    from bridge.operations.registry import arguments, repos
    from cli.drawing.progress import progress

    service = service_here()
    changes = (require is not None or prefer is not None) and name in {each.name for each in repos.every(service)}
    where = Path() if path is None and not remote and not changes else path
    with progress("asking the remote" if remote else "looking at the checkout"):
        repo = repos.add(service, name, where, github, remote, move=move, require=require, prefer=prefer)
    if warning := arguments.label_caveat(service, repo.require):
        tell(f"warning: {warning}")
    if json:
        say_json(repo)
        return
    on_github = f"; on GitHub it is {repo.github}" if repo.github else ""
    remotely = f"for every host it is {repo.default_branch} at {repo.remote}" if repo.remote else ""
    on_hosts = f"; its hosts must have {', '.join(repo.require)}" if repo.require else ""
    say(f"{repo.name} is {repo.path or 'registered'}{f'; {remotely}' if remotely else ''}{on_github}{on_hosts}")
    if remote:
        say(*repos.push_notice(service, repo))


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the registered repositories."""
    from bridge.operations.registry import repos

    known = repos.every(service_here())
    if json:
        say_json(known)
    else:
        rows = [(repo.name, _places(repo), "any" if repo.remote else repo.host, repo.github or "-") for repo in known]
        say_table(LISTED, rows, "no repositories; add one: service repo add OWNER/NAME PATH")


def _places(repo: "Repo") -> str:
    """Return the checkout of a repository, and its remote."""
    return "; ".join(filter(None, (repo.path, repo.remote)))


@app.command()
def remove(name: Annotated[str, typer.Argument(help="OWNER/NAME")], json: Json = False) -> None:
    """Forget a repository; its checkout is not touched."""
    from bridge.operations.registry import repos

    repos.remove(service_here(), name)
    say_json({"removed": name}) if json else say(f"{name} is forgotten; the checkout is as it was")


@app.command()
def sweep(
    name: Annotated[str | None, typer.Argument(help="OWNER/NAME; by default all of this host.")] = None,
    unmerged: Annotated[bool, typer.Option("--unmerged", help="All unmerged branches of tasks that are over.")] = False,
    tree: Annotated[
        list[str] | None, typer.Option(metavar="JOB", help="Unmerged branches of this task; may be repeated.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(help="Unmerged branches of tasks that ended longer ago, such as 30d.")
    ] = None,
    state: Annotated[
        str | None, typer.Option(help="Unmerged branches of tasks in this state: done, failed or cancelled.")
    ] = None,
    yes: Annotated[bool | None, typer.Option("--yes/--dry-run", help="Remove without asking, or only list.")] = None,
    json: Json = False,
) -> None:
    """List what killed processes left: worktrees, merged branches and locks; with an option, also unmerged branches.

    Unmerged commits are removed only with --unmerged, --tree, --older-than or --state. On a terminal you then see the
    list and are asked once.
    """
    from bridge.operations.branches.drops import Choice

    choice = Choice(name, tuple(tree or ()), older_than, state)
    if unmerged or choice.is_made:
        _sweep_unmerged(choice, yes=yes, json=json)
    else:
        _sweep_leftovers(name, yes=bool(yes), json=json)


def _sweep_leftovers(name: str | None, *, yes: bool, json: bool) -> None:
    from bridge.operations.branches import drops
    from bridge.operations.home import gc
    from cli.drawing.progress import progress
    from cli.invocation.faults import if_interrupted

    service = service_here()
    stopped = if_interrupted("what is removed by now is gone, the rest is as it was", "service repo sweep")
    with stopped, progress() as step:
        swept = gc.sweep(service, name, yes=yes, step=step)
        works = [] if json else drops.find_unmerged(service, drops.Choice(name), step)
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
    if works:
        say(f"{work_in_sum(works)}; to look at them: service repo sweep {name + ' ' if name else ''}--unmerged")


def _sweep_unmerged(choice: "Choice", *, yes: bool | None, json: bool) -> None:
    from bridge.operations.branches import drops
    from cli.drawing.progress import progress
    from cli.drawing.words import signature

    service = service_here()
    with progress() as step:
        works = drops.find_unmerged(service, choice, step)
    if not json:
        rows = [_work_row(work) for work in works]
        say_table(UNMERGED, rows, "no unmerged branches of tasks that are over")
    if works and yes is None and not json and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        say(work_in_sum(works))
        yes = ask_yes_or_no("Drop all of them? Their commits are on no branch of yours.")
    done = drops.drop_unmerged(service, works, actor=signature()) if yes else drops.DroppedWork((), ())
    if json:
        say_json({"unmerged": works, "dropped": done.dropped, "problems": done.problems})
    elif works:
        _say_dropped(done, yes=bool(yes))
    if done.problems:
        raise typer.Exit(1)


def _say_dropped(done: "DroppedWork", *, yes: bool) -> None:
    if not yes:
        say("nothing was dropped; to drop all that is listed, type it again with --yes")
        return
    for branch in done.dropped:
        say(f"{branch.branch} is dropped", f"bring it back: {branch.back}")
    tell(*(f"error: {problem}" for problem in done.problems))
    if done.dropped:
        path = shlex.quote(done.dropped[0].path)
        say(f"git frees the disk space when it prunes these commits, which takes weeks by default: git -C {path} gc")


def _work_row(work: "UnmergedWork") -> tuple[str, ...]:
    count = str(len(work.branches))
    title = one_line(work.title, LONGEST)
    return (
        work.root_job_id,
        work.state.words,
        title,
        ago(work.ended_at),
        count,
        str(work.commits),
        format_size(work.bytes),
        work.repo,
    )
