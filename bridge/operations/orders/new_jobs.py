"""Starting work: one agent for one message, or a recipe of several workers for a goal."""

import shlex
import time
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from activities.runtimes.known_runtimes import DRIVEN, PROGRAMS
from activities.store import job_rows, tree_rows
from activities.store.registry.repo_rows import Repo
from bridge.operations.jobs import binding_view
from bridge.operations.orders import trees
from bridge.operations.registry import agents, repos
from bridge.operations.registry.arguments import limit, within_bound_or_none
from bridge.operations.service import Service
from workflows.contract.models import Action, AutonomyPolicy, Delegation
from workflows.contract.storable import storable
from workflows.model import ids
from workflows.model.errors import RefusedError, UsageError, argument, with_nearest
from workflows.model.settings import TreeSettings
from workflows.model.workers import Assignment, Worker
from workflows.policy.recipes import Recipe, caveat, expand
from workflows.text.inert import visible
from workflows.tree.state import TreeInput

if TYPE_CHECKING:
    from activities.host.base import BoundWork

TITLE_LENGTH = 80
MESSAGE_LIMIT = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class NewWork:
    """The options of new work, beside its message."""

    pull_request: int | None = None
    issue: int | None = None
    """The issue that the new tree belongs to (ruling L1)."""
    base: str | None = None
    """The commit that the work starts from; by default the pull request's head, else HEAD (ruling O1)."""
    timeout: str | None = None
    """The timeout of each attempt of its coordinator's jobs (ruling A10)."""
    budget: float | None = None
    """The dollars its tree may cost; at most the configured bound, which it replaces (ruling C4)."""


@dataclass(frozen=True)
class NewJob(NewWork):
    """A person's request to one agent."""

    agent: str
    action: str
    message: str
    repo: str
    model: str | None = None
    effort: str | None = None
    runtime: str | None = None
    """Another runtime than the agent's own, for this job only."""
    read_only: bool = False
    """True if the caller may not start work that implements: then no job of the tree implements (ruling N5)."""
    goal: str = ""
    """The text whose first line is the task's title, if that is not the message."""
    caveat: str = ""
    """A circumstance of the order that readers of the result must know."""


@dataclass(frozen=True)
class NewRecipe(NewWork):
    """A goal for a built-in recipe (spec: `service orchestrate`)."""

    recipe: Recipe
    goal: str
    repo: str
    runtimes: tuple[str, ...] = ()
    legs: int | None = None


async def start(service: Service, new: NewJob, root: str | None = None, token: str | None = None) -> str:
    """Start a tree for the request; return the id of its root job. A tree started under this id before is returned.

    The token is used only to fetch the head of a pull request from GitHub.
    """
    if root and job_rows.get(service.store, root):
        return root
    with argument("message"):
        message = storable_message(service, new.message)
    with argument("agent"):
        agent = agents.get(service, new.agent)
    with argument("repo"):
        repo = repos.get(service, new.repo)
    with argument("agent"):
        agent.check(new.action, repo.name)
    with argument("runtime"):
        worker = _on_runtime(service, agent.worker, new.runtime)
    tree = tree_of(service, worker, Action(new.action), message, repo, root=root)
    model, effort = _option("model", new.model), _option("effort", new.effort)
    seconds, settings = _seconds(new.timeout), _within(tree.settings, new.budget)
    binding = await _bind(service, repo, new, token)
    means = {"model": model, "effort": effort, "timeout_seconds": seconds} | binding.fields
    update = {
        "assignment": tree.assignment.model_copy(update=means),
        "settings": settings,
        "read_only": new.read_only,
        "options": options(new),
        "caveat": new.caveat,
    }
    if goal := visible(new.goal).strip():
        update["title"] = title_of(storable_message(service, goal))
    return await trees.start(service, tree.model_copy(update=update), repo.host)


def options(new: NewJob | NewRecipe) -> str:
    """Return the command-line options for this request, without those for repository, pull request and issue."""
    match new:
        case NewJob():
            own = {"model": new.model, "effort": new.effort, "runtime": new.runtime}
        case NewRecipe():
            own = {"runtimes": ",".join(new.runtimes) or None, "legs": None if new.legs is None else f"{new.legs}"}
    budget = None if new.budget is None else f"{new.budget:g}"
    typed = own | {"base": new.base, "timeout": new.timeout, "budget": budget}
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in typed.items() if value)


async def _bind(service: Service, repo: Repo, new: NewWork, token: str | None) -> "BoundWork":
    with argument("base" if new.base else "pull_request" if new.pull_request else "issue" if new.issue else ""):
        return await binding_view.bind(service, repo, new.pull_request, new.issue, token, new.base)


def _seconds(timeout: str | None) -> float | None:
    try:
        with argument("timeout"):
            return limit(timeout)
    except UsageError as error:
        if timeout and timeout.isdecimal() and int(timeout):
            error.correction = timeout, f"{timeout}m"
        raise


def _within(settings: TreeSettings, budget: float | None) -> TreeSettings:
    """Return the settings with this budget as the bound on the tree's cost. Refuse a budget above the configured
    bound.
    """
    if budget is None:
        return settings
    most = settings.bounds.max_delegation_cost_usd
    with argument("budget"):
        if not (isfinite(budget) and budget > 0):
            raise UsageError(f"the budget {budget:g} must be a positive number of dollars")
        if most and budget > most:
            raise UsageError(
                f"the budget ${budget:.2f} is more than the ${most:.2f} of orchestrate.max_delegation_cost_usd",
                f"a budget of at most {most:g}; or raise the setting in the file of: service config show",
            )
    bounds = settings.bounds.model_copy(update={"max_delegation_cost_usd": budget})
    return settings.model_copy(update={"bounds": bounds})


def _option(option: str, text: str | None) -> str | None:
    """Return an option's text, checked against its bound; refuse an empty text, which may come from an unset shell
    variable.
    """
    with argument(option):
        if text is not None and not text.strip():
            raise UsageError(f"--{option} is empty: name one, or leave --{option} out")
        return within_bound_or_none(option, option, text)


@dataclass(frozen=True)
class Orchestrated:
    """The tree of a recipe."""

    job_id: str
    caveat: str
    """A caveat about the result's independence; empty without one."""


async def orchestrate(
    service: Service, new: NewRecipe, token: str | None = None, root: str | None = None
) -> Orchestrated:
    """Start a tree with the recipe's legs; a tree started under this id before is returned."""
    if root and job_rows.get(service.store, root) and (kept := tree_rows.get(service.store, root)):
        return Orchestrated(root, kept.start.caveat)
    with argument("goal"):
        goal = storable_message(service, new.goal)
    seconds = _seconds(new.timeout)
    with argument("runtimes"):
        runtimes = _runtimes(service, new.runtimes)
    builds = {name: service.settings.builds_with(name) for name in runtimes}
    with argument("legs"):
        legs = expand(new.recipe, goal, runtimes, new.legs, builds)
    with argument("repo"):
        repo = repos.get(service, new.repo)
    worker = Worker(
        name=new.recipe.value,
        runtime=runtimes[0],
        role="coordinator",
        capabilities=(Action.ASK, Action.REVIEW),
        autonomy_policy=AutonomyPolicy.READ_ONLY,
    )
    binding = await _bind(service, repo, new, token)
    tree = tree_of(service, worker, Action.ASK, goal, repo, legs, root)
    asked = tree.assignment.model_copy(update=binding.fields | {"timeout_seconds": seconds})
    update = {"assignment": asked, "settings": _within(tree.settings, new.budget), "options": options(new)}
    tree = tree.model_copy(update=update | {"caveat": caveat(new.recipe, runtimes)})
    return Orchestrated(await trees.start(service, tree, repo.host), tree.caveat)


def tree_of(
    service: Service,
    worker: Worker,
    action: Action,
    message: str,
    repo: Repo,
    legs: tuple[Delegation, ...] = (),
    root: str | None = None,
) -> TreeInput:
    """Return the input of a tree, with the fields that every kind of work has."""
    root = root or trees.new_root_id()
    return TreeInput(
        root_job_id=root,
        task_id=ids.task_id(root),
        title=title_of(message),
        repo=repo.name,
        assignment=Assignment(
            worker=service.artifacts.travelling(worker), action=action, prompt=service.artifacts.text(message)
        ),
        settings=service.settings.snapshot(),
        created_at=time.time(),
        legs=legs,
    )


def _on_runtime(service: Service, worker: Worker, runtime: str | None) -> Worker:
    """Return a copy of the agent's worker for another runtime, without the command and model meant for its own."""
    runtime = service.settings.runtime_by_name(runtime) if runtime else None
    if runtime in (None, worker.runtime):
        return worker
    if runtime not in DRIVEN:
        others = [*DRIVEN, *PROGRAMS]
        error = UsageError(f"{runtime!r} is not a runtime for {worker.name}; use its own or one of {', '.join(others)}")
        raise with_nearest(error, runtime or "", others)
    if runtime not in service.settings.configured_runtimes:
        known = ", ".join(service.settings.configured_runtimes) or "none"
        raise RefusedError(f"{runtime} is not configured; configured: {known}", "service config show")
    return worker.model_copy(update={"runtime": runtime, "command": (), "model": None, "effort": None})


def title_of(text: str) -> str:
    """Return the first line of a text, cut to the length of a title."""
    title = text.strip().splitlines()[0].strip()
    return title if len(title) <= TITLE_LENGTH else title[: TITLE_LENGTH - 1] + "…"


def storable_message(service: Service, message: str) -> str:
    """Return the message as it is stored and as agents read it (rulings B6, N7); refuse an empty one."""
    message = service.kept.hide(storable(message))
    if not message.strip():
        raise UsageError("the message is empty: write what is to be done")
    if len(message.encode()) > MESSAGE_LIMIT:
        raise UsageError("the message is larger than 1 MiB", "put it into the repository and name the file")
    return message


def _runtimes(service: Service, wanted: tuple[str, ...]) -> tuple[str, ...]:
    configured = service.settings.configured_runtimes
    wanted = tuple(dict.fromkeys(service.settings.runtime_by_name(name) for name in wanted))
    if not configured:
        raise RefusedError(
            "a recipe needs a configured runtime, and there is none",
            f"install one of {', '.join(PROGRAMS)}: service runtime check; "
            f"or set [runtimes.<name>].command in {service.home.config}",
        )
    if missing := [name for name in wanted if name not in configured]:
        error = UsageError(
            f"{missing[0]} is not configured; configured: {', '.join(configured)}", "service config show"
        )
        raise with_nearest(error, missing[0], configured)
    return wanted or configured
