"""`service agent` and `service orchestrate`: the registry, and asking agents to work."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.drawing.output import say, say_fields, say_json, say_next, say_table, tell
from cli.drawing.tables import Column
from cli.invocation.options import (
    Base,
    Budget,
    Issue,
    Json,
    Pr,
    RepoHere,
    Timeout,
    Wait,
    repo_here,
    service_here,
    text_of,
    token_here,
)
from workflows.model.errors import UsageError

if TYPE_CHECKING:
    from bridge.operations.service import Service

app = typer.Typer(help="Register agents, and ask them.", no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(help="The agent's name.")]


@app.command()
def add(
    name: Name,
    runtime: Annotated[str, typer.Option(help="codex, claude, kimi or shell.")],
    command: Annotated[str, typer.Option(help="The shell runtime's command; it reads the prompt on stdin.")] = "",
    model: Annotated[str, typer.Option(help="Model; empty for the runtime's default.")] = "",
    effort: Annotated[str, typer.Option(help="Effort; empty for the runtime's default.")] = "",
    capabilities: Annotated[str, typer.Option(help="Comma-separated: ask, review, implement.")] = "ask,review",
    autonomy: Annotated[str, typer.Option(help="auto, read-only, workspace-write or danger-full-access.")] = "auto",
    template: Annotated[str, typer.Option(help="Text that precedes every prompt of this agent.")] = "",
    role: Annotated[str, typer.Option("--role", "--about", help="What the agent is for, in a few words.")] = "",
    repo: Annotated[list[str] | None, typer.Option(help="OWNER/NAME it may work on; may be repeated.")] = None,
    session: Annotated[
        str, typer.Option(help="fresh: a new session for each job; tree: a lead continues its session.")
    ] = "fresh",
    require: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="A label its hosts must have; may be repeated.")
    ] = None,
    prefer: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Hosts with this label come first; may be repeated.")
    ] = None,
    json: Json = False,
) -> None:
    """Register an agent."""
    from bridge.operations.health import runtimes
    from bridge.operations.registry import agents, arguments

    asks = (tuple(require or ()), tuple(prefer or ()))
    new = agents.NewAgent(
        name, runtime, command, model, effort, capabilities, autonomy, template, role, tuple(repo or ()), session, *asks
    )
    service = service_here()
    agent = agents.add(service, new)
    runtime = agent.worker.runtime
    if lacking := runtimes.lacks(service, runtime):
        tell(f"warning: {lacking}")
    if warning := arguments.label_caveat(service, agent.require):
        tell(f"warning: {warning}")
    if json:
        say_json(agents.view(agent))
        return
    say(f"{name} is registered ({service.settings.program_name(runtime)})")
    if not agent.repos:
        say(f"it may work nowhere yet: service agent allow {name} OWNER/NAME")
        return
    verb = agent.worker.capabilities[0]
    say_next(f'service agent {verb} {name} "MESSAGE" --repo {agent.repos[0]}', "service agent list")


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the registered agents."""
    from bridge.operations.registry import agents

    service = service_here()
    known = agents.every(service)
    if json:
        say_json([agents.view(agent) for agent in known])
        return
    rows = [
        (
            a.worker.name,
            service.settings.program_name(a.worker.runtime),
            ",".join(a.worker.capabilities),
            a.worker.autonomy_policy,
            ",".join(a.repos),
        )
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
    from cli.drawing.words import readable

    value = agents.view(agents.get(service_here(), name))
    if json:
        say_json(value)
    else:
        say_fields(readable(value.items()))


@app.command()
def remove(name: Name, json: Json = False) -> None:
    """Forget an agent. Its open jobs still run to their end."""
    from bridge.operations.registry import agents

    agents.remove(service_here(), name)
    say_json({"removed": name}) if json else say(f"{name} is forgotten")


@app.command()
def allow(name: Name, repo: Annotated[str, typer.Argument(help="OWNER/NAME")], json: Json = False) -> None:
    """Allow an agent to work on a repository."""
    from bridge.operations.registry import agents

    service = service_here()
    agents.allow(service, name, repo)
    say_json(agents.view(agents.get(service, name))) if json else say(f"{name} may work on {repo}")


@app.command()
def deny(name: Name, repo: Annotated[str, typer.Argument(help="OWNER/NAME")], json: Json = False) -> None:
    """Stop letting an agent work on a repository. Its open jobs there still run to their end."""
    from bridge.operations.registry import agents

    service = service_here()
    agents.deny(service, name, repo)
    say_json(agents.view(agents.get(service, name))) if json else say(f"{name} may not work on {repo}")


Who = Annotated[str | None, typer.Argument(help="The agent; may be left out if only one is able and allowed.")]
Message = Annotated[str | None, typer.Argument(metavar="MESSAGE", help="What to do; `-` reads it from standard input.")]
Model = Annotated[str | None, typer.Option(help="Model for this job.")]
Effort = Annotated[str | None, typer.Option(help="Effort for this job.")]
OnRuntime = Annotated[str | None, typer.Option("--runtime", help="Another runtime than the agent's own, for this job.")]


def start(
    context: typer.Context,
    name: Who = None,
    message: Message = None,
    repo: RepoHere = None,
    model: Model = None,
    effort: Effort = None,
    runtime: OnRuntime = None,
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    budget: Budget = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Start a job. Its action is the verb that was typed: ask, review or implement."""
    import asyncio

    from bridge.operations.jobs import hosts
    from bridge.operations.orders import new_jobs
    from cli.asking.follow_tree import follow, follow_commands
    from cli.drawing.progress import progress

    action, service = str(context.info_name), service_here()
    if not name:
        raise UsageError("the message is missing", f'service agent {action} "MESSAGE"')
    where = repo_here(service, repo)
    agent, text = _agent_and_message(service, action, where, name, message)
    work = _work(pr, issue, base, timeout, budget)
    new = new_jobs.NewJob(agent, action, text_of(text), where, model, effort, runtime, **work)
    if not json:
        tell_choice(agent=agent if message is None else "", repository=where if repo is None else "")
    with progress(f"fetching {where}"):
        job_id = asyncio.run(new_jobs.start(service, new, token=token_here(service)))
    if note := hosts.absence_of(service, where):
        tell(f"note: {note}")
    if wait:
        raise typer.Exit(follow(service, job_id, json=json))
    if json:
        say_json({"job_id": job_id})
    else:
        say(job_id)
        say_next(*follow_commands(job_id))


def _agent_and_message(service: "Service", action: str, repo: str, first: str, message: str | None) -> tuple[str, str]:
    """Return the agent and the message. One argument is the message, unless it is the name of an agent or a runtime,
    or nearly so.
    """
    from activities.runtimes.known_runtimes import PROGRAMS, RUNTIMES
    from bridge.operations.registry import agents
    from workflows.contract.faults import nearest
    from workflows.contract.models import Action

    if message is not None:
        return first, message
    near = nearest(first, [*(agent.worker.name for agent in agents.every(service)), *RUNTIMES, *PROGRAMS])
    if near and not set(first) & set(" \n"):
        unknown = "" if near == first else f", and there is no agent {first}"
        raise UsageError(f"the message is missing{unknown}", f'service agent {action} {near} "MESSAGE"')
    return agents.only(service, Action(action), repo).worker.name, first


def _work(*typed: object) -> dict[str, Any]:
    """Return the fields of `NewWork` from the options `--pr`, `--issue`, `--base`, `--timeout` and `--budget`."""
    return dict(zip(("pull_request", "issue", "base", "timeout", "budget"), typed, strict=True))


def tell_choice(**chosen: str) -> None:
    """Print the values that were chosen because the command left them out."""
    if words := [f"{what} {name}" for what, name in chosen.items() if name]:
        tell(", ".join(words))


for action, says in (
    ("ask", "Ask an agent a question about a repository."),
    ("review", "Have an agent review a repository."),
    ("implement", "Have an agent change a repository, on a branch of its own."),
):
    app.command(action, help=says)(start)


orchestrate_app = typer.Typer(
    help="Run a built-in recipe of several workers.", no_args_is_help=True, rich_markup_mode=None
)

Goal = Annotated[str, typer.Argument(help="The goal, or what to review; `-` reads it from standard input.")]
Runtimes = Annotated[str, typer.Option(help="Comma-separated; by default all that are configured.")]
Legs = Annotated[int | None, typer.Option(help="How many parallel parts.")]


def orchestrate(
    context: typer.Context,
    goal: Goal,
    repo: RepoHere = None,
    runtimes: Runtimes = "",
    legs: Legs = None,
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    budget: Budget = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Start the recipe whose name was typed."""
    _orchestrate(
        str(context.info_name), goal, repo, runtimes, legs, _work(pr, issue, base, timeout, budget), wait, json
    )


for recipe, says in (
    ("review-panel", "Several reviewers, each with one question in mind, on different runtimes."),
    ("decompose-and-verify", "Parallel implementation parts, and a gate that verifies them."),
):
    orchestrate_app.command(recipe, help=says)(orchestrate)


@orchestrate_app.command()
def verifier(
    goal: Goal,
    repo: RepoHere = None,
    runtimes: Runtimes = "",
    pr: Pr = None,
    issue: Issue = None,
    base: Base = None,
    timeout: Timeout = None,
    budget: Budget = None,
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Let one agent do the work, and another check it."""
    _orchestrate("verifier", goal, repo, runtimes, None, _work(pr, issue, base, timeout, budget), wait, json)


def _orchestrate(
    recipe: str,
    goal: str,
    repo: str | None,
    runtimes: str,
    legs: int | None,
    work: dict[str, Any],
    wait: bool,
    json: bool,
) -> None:
    import asyncio

    from bridge.operations.jobs import hosts
    from bridge.operations.orders import new_jobs
    from cli.asking.follow_tree import follow, follow_commands
    from cli.drawing.progress import progress
    from workflows.policy.recipes import Recipe

    service = service_here()
    named = tuple(name.strip() for name in runtimes.split(",") if name.strip())
    where = repo_here(service, repo)
    new = new_jobs.NewRecipe(Recipe(recipe), text_of(goal), where, named, legs, **work)
    if not json:
        tell_choice(repository=where if repo is None else "")
    with progress(f"fetching {where}"):
        started = asyncio.run(new_jobs.orchestrate(service, new, token_here(service)))
    if note := hosts.absence_of(service, where):
        tell(f"note: {note}")
    job_id, notes = started.job_id, [f"note: {started.caveat}"] if started.caveat else []
    if wait:
        tell(*notes)
        raise typer.Exit(follow(service, job_id, json=json))
    if json:
        say_json({"job_id": job_id, "caveat": started.caveat})
        return
    say(job_id, *notes)
    say_next(*follow_commands(job_id))
