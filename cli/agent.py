"""`service agent`: the registry, and asking an agent to work."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.belonging import Base, Issue, Pr, Timeout, token_here
from cli.drawing.tables import Column
from cli.output import say, say_fields, say_json, say_table, tell

if TYPE_CHECKING:
    from bridge.operations.orders.new_jobs import NewJob

app = typer.Typer(help="Register agents, and ask them.", no_args_is_help=True, rich_markup_mode=None)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="The agent's name.")]
RepoName = Annotated[str, typer.Option("--repo", help="OWNER/NAME")]


@app.command()
def add(
    name: Name,
    runtime: Annotated[str, typer.Option(help="runtime_a, runtime_b, runtime_c or shell.")],
    command: Annotated[str, typer.Option(help="The shell runtime's command; it reads the prompt on stdin.")] = "",
    model: Annotated[str, typer.Option(help="Model; empty for the runtime's default.")] = "",
    effort: Annotated[str, typer.Option(help="Effort; empty for the runtime's default.")] = "",
    capabilities: Annotated[str, typer.Option(help="Comma-separated: ask, review, implement.")] = "ask,review",
    autonomy: Annotated[str, typer.Option(help="auto, read-only, workspace-write or danger-full-access.")] = "auto",
    template: Annotated[str, typer.Option(help="Text that precedes every prompt of this agent.")] = "",
    role: Annotated[str, typer.Option("--role", "--about", help="What the agent is for, in a few words.")] = "",
    repo: Annotated[list[str] | None, typer.Option(help="OWNER/NAME it may work on; may be repeated.")] = None,
    session: Annotated[
        str, typer.Option(help="fresh: each job anew; tree: a coordinator goes on in the session it began.")
    ] = "fresh",
    json: Json = False,
) -> None:
    """Register an agent."""
    from bridge.operations.health import runtimes
    from bridge.operations.registry import agents
    from bridge.operations.service import Service

    new = agents.NewAgent(
        name, runtime, command, model, effort, capabilities, autonomy, template, role, tuple(repo or ()), session
    )
    service = Service.locate()
    agent = agents.add(service, new)
    if lacking := runtimes.lacks(service, runtime):
        tell(f"warning: {lacking}")
    if json:
        say_json(agents.shown(agent))
        return
    say(f"{name} is registered ({runtime})")
    if not agent.repos:
        say(f"it may work nowhere yet: service agent allow {name} OWNER/NAME")


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the registered agents."""
    from bridge.operations.registry import agents
    from bridge.operations.service import Service

    known = agents.every(Service.locate())
    if json:
        say_json([agents.shown(agent) for agent in known])
        return
    rows = [
        (a.worker.name, a.worker.runtime, ",".join(a.worker.capabilities), a.worker.autonomy_policy, ",".join(a.repos))
        for a in known
    ]
    say_table(
        (
            "NAME",
            Column("RUNTIME", leaves=1),
            Column("CAPABILITIES", leaves=2),
            Column("AUTONOMY", leaves=3),
            Column("REPOS", least=16),
        ),
        rows,
        "no agents; add one: service agent add NAME --runtime RUNTIME --repo OWNER/NAME",
    )


@app.command()
def show(name: Name, json: Json = False) -> None:
    """Show one agent."""
    from bridge.operations.registry import agents
    from bridge.operations.service import Service
    from cli.words import readable

    value = agents.shown(agents.get(Service.locate(), name))
    if json:
        say_json(value)
    else:
        say_fields(readable(value.items()))


@app.command()
def remove(name: Name, json: Json = False) -> None:
    """Forget an agent; jobs it has are carried to their end."""
    from bridge.operations.registry import agents
    from bridge.operations.service import Service

    agents.remove(Service.locate(), name)
    say_json({"removed": name}) if json else say(f"{name} is forgotten")


@app.command()
def allow(name: Name, repo: Annotated[str, typer.Argument(help="OWNER/NAME")], json: Json = False) -> None:
    """Let an agent work on a repository."""
    from bridge.operations.registry import agents
    from bridge.operations.service import Service

    service = Service.locate()
    agents.allow(service, name, repo)
    say_json(agents.shown(agents.get(service, name))) if json else say(f"{name} may work on {repo}")


@app.command()
def deny(name: Name, repo: Annotated[str, typer.Argument(help="OWNER/NAME")], json: Json = False) -> None:
    """Stop letting an agent work on a repository; jobs it has there are carried to their end."""
    from bridge.operations.registry import agents
    from bridge.operations.service import Service

    service = Service.locate()
    agents.deny(service, name, repo)
    say_json(agents.shown(agents.get(service, name))) if json else say(f"{name} may not work on {repo}")


Message = Annotated[str, typer.Argument(help="What to do; `-` reads it from standard input.")]
Model = Annotated[str | None, typer.Option(help="Model for this job.")]
Effort = Annotated[str | None, typer.Option(help="Effort for this job.")]
OnRuntime = Annotated[str | None, typer.Option("--runtime", help="Another runtime than the agent's own, for this job.")]
Wait = Annotated[bool, typer.Option("--wait", help="Follow the job to its end.")]


@app.command()
def ask(
    name: Name,
    message: Message,
    repo: RepoName,
    model: Model = None,
    effort: Effort = None,
    runtime: OnRuntime = None,
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Ask an agent a question about a repository."""
    _start(_new(name, "ask", message, repo, (model, effort, runtime), (pr, issue, base, timeout)), wait, json)


@app.command()
def review(
    name: Name,
    message: Message,
    repo: RepoName,
    model: Model = None,
    effort: Effort = None,
    runtime: OnRuntime = None,
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Have an agent review a repository."""
    _start(_new(name, "review", message, repo, (model, effort, runtime), (pr, issue, base, timeout)), wait, json)


@app.command()
def implement(
    name: Name,
    message: Message,
    repo: RepoName,
    model: Model = None,
    effort: Effort = None,
    runtime: OnRuntime = None,
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Have an agent change a repository, on a branch of its own."""
    _start(_new(name, "implement", message, repo, (model, effort, runtime), (pr, issue, base, timeout)), wait, json)


def _new(
    name: str,
    action: str,
    message: str,
    repo: str,
    means: tuple[str | None, str | None, str | None],
    belongs_to: tuple[int | None, int | None, str | None, str | None],
) -> "NewJob":
    from bridge.operations.orders.new_jobs import NewJob
    from cli.piped import text_of

    pr, issue, base, timeout = belongs_to
    return NewJob(name, action, text_of(message), repo, *means, pr, issue, base, timeout)


def _start(new: "NewJob", wait: bool, json: bool) -> None:
    import asyncio

    from bridge.operations.orders import new_jobs
    from bridge.operations.service import Service
    from cli.follow import follow

    service = Service.locate()
    job_id = asyncio.run(new_jobs.start(service, new, token=token_here(service)))
    if wait:
        raise typer.Exit(follow(service, job_id, json=json))
    say_json({"job_id": job_id}) if json else say(job_id, f"watch it: service job tree {job_id} --watch")
