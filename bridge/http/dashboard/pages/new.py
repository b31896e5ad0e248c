"""The pages that start a task and register a repository, an agent or a pipeline (ruling M4)."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from activities.runtimes.known_runtimes import SHELL
from activities.store.job_rows import JobFilter
from activities.store.registry.agent_rows import Agent
from bridge.http.dashboard.frame.page import Done, FormAction, PageRequest, PageView, SubmittedForm, success
from bridge.http.dashboard.parts import lists
from bridge.operations.health import runtimes
from bridge.operations.idempotency import Answer, once
from bridge.operations.jobs import hosts, jobs
from bridge.operations.orders import follow_ups, new_jobs, trees
from bridge.operations.orders.new_jobs import NewJob, NewRecipe
from bridge.operations.pipelines import definitions
from bridge.operations.registry import agents, arguments, init, repos
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.errors import NotFoundError, RefusedError, UsageError, argument
from workflows.model.workers import SessionScope
from workflows.pipeline.read import read
from workflows.pipeline.syntax import Format
from workflows.policy.recipes import Recipe

TASK, REPOSITORY, AGENT, PIPELINE = "/new", "/new/repository", "/new/agent", "/new/pipeline"
TABS = {TASK: "Task", REPOSITORY: "Repository", AGENT: "Agent", PIPELINE: "Pipeline"}
MEANS = ("model", "effort", "pull_request", "issue", "base", "timeout", "budget")

ASKS = ("require", "prefer")
"""The fields of labels."""

RECIPE = "recipe:"
"""The beginning of a recipe's name among the names of agents, which have no colon."""
RECIPES = {
    Recipe.REVIEW_PANEL: "several reviewers, each with one question in mind",
    Recipe.DECOMPOSE_AND_VERIFY: "parallel implementations, and a check",
    Recipe.VERIFIER: "one implementation, and a check",
}
DOES = {
    Action.ASK: "answers or plans, and may have others do the work",
    Action.REVIEW: "judges, and changes nothing",
    Action.IMPLEMENT: "changes files, on a branch of its own",
}
AUTONOMY = {
    AutonomyPolicy.AUTO: "the usual: reads, and changes nothing",
    AutonomyPolicy.READ_ONLY: "reads, and changes nothing",
    AutonomyPolicy.WORKSPACE_WRITE: "writes in the worktree of its job",
    AutonomyPolicy.DANGER_FULL_ACCESS: "does all that the service's own account may",
}
SESSIONS = {
    SessionScope.FRESH: "every job begins a session of its own",
    SessionScope.TREE: "a coordinator continues the session of its first job",
}
EXAMPLE = """\
name: nightly
repo: {repo}
stages:
  - id: test
    kind: shell
    command: make test
"""


def _look_task(service: Service, asked: PageRequest) -> Mapping[str, object]:
    known = [repo.name for repo in repos.every(service)]
    registered = agents.every(service)
    return _tab(TASK) | {
        "title": "New task",
        "once": secrets.token_hex(8),
        "repos": known,
        "agents": registered,
        "recipe": RECIPE,
        "recipes": RECIPES if service.settings.configured_runtimes else {},
        "actions": DOES,
        "pipelines": [pipeline.name for pipeline in definitions.every(service) if pipeline.enabled],
        "wanted": _likely(service, asked, known),
        "instead": _instead(asked, registered),
        "most": service.settings.orchestrate.max_delegation_cost_usd,
    }


def _likely(service: Service, asked: PageRequest, known: Sequence[str]) -> dict[str, str]:
    """Return what is chosen beforehand: what the address names, else as in the last task; an agent that is able."""
    last = next(iter(jobs.find(service, JobFilter(roots_only=True, limit=1))), None)
    usual = last.repo if last and last.repo in known else known[0] if len(known) == 1 else ""
    repo, action = asked.query.get("repo", usual), asked.query.get("action", "")
    wanted = [action] if action else list(Action)
    first = [last.agent] if last else []
    able = (follow_ups.choose(service, Action(does), repo, "", first) for does in wanted if does in list(Action))
    agent = asked.query.get("agent") or next((found.worker.name for found in able if found), "")
    worker = next((other.worker for other in agents.every(service) if other.worker.name == agent), None)
    return {"repo": repo, "agent": agent, "action": action or (worker.capabilities[0] if worker else Action.ASK)}


def _instead(asked: PageRequest, registered: Sequence[Agent]) -> tuple[str, ...]:
    """Return what the chosen agent can do, if that is not what the refused form wanted."""
    chosen = next((agent.worker for agent in registered if agent.worker.name == asked.typed.get("agent")), None)
    if chosen is None or asked.typed.get("action") in chosen.capabilities:
        return ()
    return chosen.capabilities


async def _start_task(service: Service, form: SubmittedForm) -> Done:
    """Start a tree and show it. The same form sent twice starts one tree."""
    means = _means(form)
    agent = form.text("agent")
    new = _recipe(form, agent, means) if agent.startswith(RECIPE) else _job(form, agent, means)

    async def start(root: str | None) -> Answer:
        if isinstance(new, NewJob):
            return {"job_id": await new_jobs.start(service, new, root), "caveat": ""}
        started = await new_jobs.orchestrate(service, new, root=root)
        return {"job_id": started.job_id, "caveat": started.caveat}

    words = repr(new)
    answer = await once(service, _key(form, words), words, trees.new_root_id, start)
    message = f"It is started. {answer['caveat'].capitalize()}" if answer["caveat"] else "It is started."
    return success(message, f"/ui/trees/{answer['job_id']}")


def _job(form: SubmittedForm, agent: str, means: Mapping[str, Any]) -> NewJob:
    with argument("agent"):
        if not agent:
            raise UsageError("choose an agent or a recipe")
    with argument("action"):
        action = form.text("instead", "") or form.text("action", "")
        if action not in list(Action):
            raise UsageError(f"choose what it does: {', '.join(Action)}")
    return NewJob(agent=agent, action=action, message=form.text("message"), repo=_repo(form), **means)


def _recipe(form: SubmittedForm, name: str, means: Mapping[str, Any]) -> NewRecipe:
    with argument("agent"):
        try:
            recipe = Recipe(name.removeprefix(RECIPE))
        except ValueError:
            raise NotFoundError(f"no recipe {name.removeprefix(RECIPE)[:60]!r}; known: {', '.join(Recipe)}") from None
    for field in ("model", "effort"):
        with argument(field):
            if means[field]:
                raise UsageError(f"a recipe takes no {field}: leave it empty")
    taken = {name: value for name, value in means.items() if name not in {"model", "effort"}}
    return NewRecipe(recipe=recipe, goal=form.text("message"), repo=_repo(form), **taken)


def _repo(form: SubmittedForm) -> str:
    with argument("repo"):
        if not form.text("repo", ""):
            raise UsageError("choose a repository")
    return form.text("repo")


def _means(form: SubmittedForm) -> dict[str, Any]:
    """Return the optional fields; an empty one is left out."""
    means: dict[str, Any] = {name: form.text(name, "").strip() or None for name in MEANS}
    for name, what in (("pull_request", "a pull request"), ("issue", "an issue")):
        with argument(name):
            means[name] = lists.number(means[name] or "", what)
    with argument("budget"):
        means["budget"] = _dollars(means["budget"])
    return means


def _dollars(text: str | None) -> float | None:
    try:
        return None if text is None else float(text.removeprefix("$"))
    except ValueError:
        raise UsageError(f"{text!r} is not a number of dollars") from None


def _key(form: SubmittedForm, words: str) -> str:
    """Return an idempotency key: of this page in this session, as long as the words are the same."""
    identity = (form.asked.session.key, form.text("once"), words)
    return f"dashboard-{hashlib.sha256(repr(identity).encode()).hexdigest()[:40]}"


def _look_repository(service: Service, asked: PageRequest) -> Mapping[str, object]:
    return _tab(REPOSITORY) | {
        "title": "Add a repository",
        "host": service.settings.host,
        "labels": _known_labels(service),
    }


async def _add_repository(service: Service, form: SubmittedForm) -> Done:
    """Register a checkout, a remote or both, under the name of the remote if none is given; a taken name stays."""
    typed, remote = form.text("path", "").strip(), form.text("remote", "").strip()
    with argument("path"):
        if not (typed or remote):
            raise UsageError("type the path of a checkout, or a remote below")
        path = _absolute(typed) if typed else None
        checkout = init.checkout(service, path) if path else None
    with argument("name"):
        name = form.text("name", "").strip() or (checkout.name if checkout else init.name_of(service, remote))
        repos.check_name(name)
        init.check_name(service, checkout, name)
    github = form.text("github", "").strip() or None
    require, prefer = (_labels(form, field) or None for field in ASKS)
    repo = repos.add(service, name, path, github, remote or None, require=require, prefer=prefer)
    then = AGENT if not agents.every(service) else TASK
    message = f"{repo.name} is registered, at {' and '.join(filter(None, (repo.path, repo.remote)))}."
    return success(_with_warning(service, message, repo.require), f"/ui{then}?repo={repo.name}")


def _known_labels(service: Service) -> list[str] | None:
    """Return the labels that hosts have, where several share the store; None on a host with a store of its own."""
    if not service.settings.is_fleet:
        return None
    return sorted({label for host in hosts.every(service) for label in host.labels})


def _labels(form: SubmittedForm, field: str) -> tuple[str, ...]:
    """Return the labels of a field, which commas or spaces separate."""
    with argument(field):
        return arguments.labels(form.text(field, "").replace(",", " ").split())


def _with_warning(service: Service, text: str, require: Iterable[str]) -> str:
    """Add a warning if no host has a required label."""
    warning = arguments.label_caveat(service, require)
    return f"{text} Mind that {warning}." if warning else text


def _absolute(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise UsageError(f"{text!r} is not an absolute path, such as /home/ann/shop")
    return path


def _look_agent(service: Service, asked: PageRequest) -> Mapping[str, object]:
    settings, every = service.settings, service.settings.every_runtime
    return _tab(AGENT) | {
        "title": "Add an agent",
        "runtimes": {name: "a command" if name == SHELL else settings.program_name(name) for name in every},
        "lacks": {name: runtimes.lacks(service, name) for name in every},
        "repos": {repo.name: "" for repo in repos.every(service)},
        "wanted": asked.query.get("repo", ""),
        "actions": DOES,
        "autonomy": AUTONOMY,
        "sessions": SESSIONS,
        "labels": _known_labels(service),
    }


async def _add_agent(service: Service, form: SubmittedForm) -> Done:
    texts = ("name", "runtime", "command", "model", "effort", "autonomy", "template", "role", "session")
    new = NewAgent(
        **{name: form.text(name, "").strip() for name in texts},
        capabilities=",".join(form.all("capabilities")),
        repos=form.all("repos"),
        require=_labels(form, "require"),
        prefer=_labels(form, "prefer"),
    )
    agent = agents.add(service, new)
    lacking = runtimes.lacks(service, new.runtime)
    message = _with_warning(service, f"{new.name} is registered{f', but {lacking}' if lacking else ''}.", new.require)
    first = f"?agent={new.name}&repo={agent.repos[0]}" if agent.repos else ""
    return success(message, f"/ui{TASK}{first}" if first else "/ui/agents")


def _look_pipeline(service: Service, asked: PageRequest) -> Mapping[str, object]:
    known = [repo.name for repo in repos.every(service)]
    example = EXAMPLE.format(repo=known[0] if known else "acme/shop")
    return _tab(PIPELINE) | {"title": "Add a pipeline", "formats": list(Format), "example": example}


async def _add_pipeline(service: Service, form: SubmittedForm) -> Done:
    """Register a pipeline; one of its name is replaced only if the form says so."""
    text = form.text("definition")
    with argument("format"):
        try:
            format_ = Format(form.text("format"))
        except ValueError:
            raise UsageError(f"choose the format: {', '.join(Format)}") from None
    with argument("definition"):
        name = read(text, format_).name
        if form.text("replace", "") != "yes" and name in {known.name for known in definitions.every(service)}:
            raise RefusedError(f"there is a pipeline {name} already: tick the box to replace it")
        pipeline = await definitions.add(service, text, format_)
    return success(f"{pipeline.name} is registered.", f"/ui/pipelines/{pipeline.name}")


def _tab(here: str) -> dict[str, object]:
    return {"tabs": TABS, "tab": here}


PAGES = (
    PageView(TASK, "new_task.html", _look_task, fields=("repo", "agent", "action", "message", *MEANS)),
    PageView(REPOSITORY, "new_repository.html", _look_repository, fields=("path", "remote", "name", "github", *ASKS)),
    PageView(
        AGENT,
        "new_agent.html",
        _look_agent,
        fields=(
            *("name", "runtime", "command", "model", "effort", "capabilities"),
            *("autonomy", "template", "role", "repos", "session", *ASKS),
        ),
    ),
    PageView(PIPELINE, "new_pipeline.html", _look_pipeline, fields=("definition", "format")),
)
ACTIONS = (
    FormAction(TASK, _start_task),
    FormAction(REPOSITORY, _add_repository),
    FormAction(AGENT, _add_agent),
    FormAction(PIPELINE, _add_pipeline),
)
