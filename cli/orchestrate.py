"""`service orchestrate`: the built-in recipes."""

from typing import Annotated

import typer

from cli.belonging import Base, Issue, Pr, Timeout, token_here
from cli.output import say, say_json, tell

app = typer.Typer(help="Run a built-in recipe of several workers.", no_args_is_help=True, rich_markup_mode=None)

Goal = Annotated[str, typer.Argument(help="What to reach, or to review; `-` reads it from standard input.")]
RepoName = Annotated[str | None, typer.Option("--repo", help="OWNER/NAME; the one you stand in when left out.")]
Runtimes = Annotated[str, typer.Option(help="Comma-separated; all that are configured when left out.")]
Legs = Annotated[int | None, typer.Option(help="How many parallel legs.")]
Wait = Annotated[bool, typer.Option("--wait", help="Follow the tree to its end.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command(name="review-panel")
def review_panel(
    goal: Goal,
    repo: RepoName = None,
    runtimes: Runtimes = "",
    legs: Legs = None,
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Several reviewers, each with one lens, on different runtimes."""
    _start("review-panel", goal, repo, runtimes, legs, (pr, issue, base, timeout), wait, json)


@app.command(name="decompose-and-verify")
def decompose_and_verify(
    goal: Goal,
    repo: RepoName = None,
    runtimes: Runtimes = "",
    legs: Legs = None,
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Parallel implementation legs, and a gate that verifies them."""
    _start("decompose-and-verify", goal, repo, runtimes, legs, (pr, issue, base, timeout), wait, json)


@app.command()
def verifier(
    goal: Goal,
    repo: RepoName = None,
    runtimes: Runtimes = "",
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """One producer, and an independent check of its work."""
    _start("verifier", goal, repo, runtimes, None, (pr, issue, base, timeout), wait, json)


def _start(
    recipe: str,
    goal: str,
    repo: str | None,
    runtimes: str,
    legs: int | None,
    belongs_to: tuple[int | None, int | None, str | None, str | None],
    wait: bool,
    json: bool,
) -> None:
    import asyncio

    from bridge.operations.orders import new_jobs
    from bridge.operations.service import Service
    from cli.follow import follow
    from cli.piped import text_of
    from workflows.policy.recipes import Recipe

    service = Service.locate()
    named = tuple(name.strip() for name in runtimes.split(",") if name.strip())
    new = new_jobs.NewRecipe(Recipe(recipe), text_of(goal), repo, named, legs, *belongs_to)
    started = asyncio.run(new_jobs.orchestrate(service, new, token_here(service)))
    job_id, told = started.job_id, [f"note: {started.caveat}"] if started.caveat else []
    if wait:
        tell(*told)
        raise typer.Exit(follow(service, job_id, json=json))
    if json:
        say_json({"job_id": job_id, "caveat": started.caveat})
        return
    say(job_id, *told, f"watch it: service job tree {job_id} --watch")
