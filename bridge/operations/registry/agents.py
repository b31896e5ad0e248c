"""Registering agents (ruling K3)."""

import re
import shlex
from dataclasses import dataclass, replace
from typing import Any

from activities.redaction.redact import map_texts
from activities.runtimes.known_runtimes import BY_ACP, KNOWN, PROGRAMS, RUNTIMES, SHELL
from activities.store import job_rows
from activities.store.job_rows import JobFilter
from activities.store.registry import agent_rows
from activities.store.registry.agent_rows import Agent
from bridge.operations.registry import arguments, repos
from bridge.operations.registry.arguments import within_bound, within_bound_or_none
from bridge.operations.service import Service
from workflows.contract.models import WRITE_POLICIES, Action, AutonomyPolicy
from workflows.model.errors import Commands, NotFoundError, RefusedError, UsageError, argument, with_nearest
from workflows.model.workers import SessionScope, Worker
from workflows.policy.preflight import NO_AGENT, RUNTIME_NAMES

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class NewAgent:
    """A person's registration of an agent."""

    name: str
    runtime: str
    command: str = ""
    model: str = ""
    effort: str = ""
    capabilities: str = "ask,review"
    autonomy: str = "auto"
    template: str = ""
    role: str = ""
    repos: tuple[str, ...] = ()
    session: str = "fresh"
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()


def add(service: Service, new: NewAgent) -> Agent:
    """Register an agent under a free name."""
    new = replace(new, runtime=service.settings.runtime_by_name(new.runtime))
    worker = map_texts(_worker(service, new), service.kept.hide)
    with argument("repos"):
        for repo in new.repos:
            repos.get(service, repo)
    with argument("require"):
        require, prefer = arguments.labels(new.require), arguments.labels(new.prefer)
    with argument("name"):
        if not agent_rows.add(service.store, worker, new.repos, require, prefer):
            raise RefusedError(f"there is an agent {new.name} already", f"service agent show {new.name}")
    return get(service, new.name)


def every(service: Service) -> list[Agent]:
    """Return the registered agents by name."""
    return agent_rows.every(service.store)


def get(service: Service, name: str) -> Agent:
    """Return one agent; raise an error with the known names if it is not registered."""
    agent = agent_rows.get(service.store, name)
    if agent is None:
        names = [agent.worker.name for agent in agent_rows.every(service.store)]
        known = ", ".join(names) or "none"
        if name in {*RUNTIME_NAMES, *PROGRAMS, *BY_ACP}:
            raise NotFoundError(f"{name} {NO_AGENT}; known: {known}", f"service agent add NAME --runtime {name}")
        missing = NotFoundError(f"no agent {name}; known: {known}", f"service agent add {name} --runtime RUNTIME")
        raise with_nearest(missing, name, names)
    return agent


def only(service: Service, action: Action, repo: str) -> Agent:
    """Return the agent that is the only one able and allowed to do this on a repository."""
    able = [agent for agent in every(service) if agent.can(action, repo)]
    if len(able) == 1:
        return able[0]
    if able:
        names = [agent.worker.name for agent in able]
        ways = Commands(*(f'service agent {action} {name} "MESSAGE" --repo {repo}' for name in names))
        raise UsageError(f"which agent? {' and '.join(names)} can {action} on {repo}", ways)
    ways = Commands("service agent list", f"service agent allow NAME {repo}", "service init")
    raise RefusedError(f"no agent can {action} on {repo}", ways)


def refuse_unknown(service: Service, name: str) -> None:
    """Raise if a list is filtered by an agent that is neither registered nor had a job."""
    if not job_rows.find(service.store, JobFilter(agent=name, limit=1)):
        get(service, name)


def remove(service: Service, name: str) -> None:
    """Remove an agent; its jobs keep the worker they were dispatched with."""
    get(service, name)
    agent_rows.remove(service.store, name)


def allow(service: Service, name: str, repo: str) -> None:
    """Allow an agent to work on a repository."""
    get(service, name)
    repos.get(service, repo)
    agent_rows.allow(service.store, name, repo)


def deny(service: Service, name: str, repo: str) -> None:
    """Stop letting an agent work on a repository."""
    if repo not in get(service, name).repos:
        raise RefusedError(f"{name} was not allowed on {repo}", f"service agent show {name}")
    agent_rows.deny(service.store, name, repo)


def view(agent: Agent) -> dict[str, Any]:
    """Return an agent's fields for display, without those that only the workers of trees have."""
    row = agent.worker.model_dump(mode="json", exclude={"ephemeral", "template_digest"})
    return row | {
        "repos": list(agent.repos),
        "require": list(agent.require),
        "prefer": list(agent.prefer),
        "added_at": agent.added_at,
    }


def _worker(service: Service, new: NewAgent) -> Worker:
    with argument("name"):
        _check_name(new.name)
    with argument("runtime"):
        _check_runtime(service, new.runtime)
    with argument("autonomy"):
        policy = _policy(new.autonomy)
    with argument("capabilities"):
        capabilities = _capabilities(new.name, new.capabilities, policy)
    with argument("command"):
        command = _command(new)
    with argument("session"):
        session = _session(new)
    return Worker(
        name=new.name,
        runtime=new.runtime,
        command=command,
        model=_text("model", "model", "--model", new.model),
        effort=_text("effort", "effort", "--effort", new.effort),
        template=_text("template", "agent_template", "the template", new.template),
        role=_text("role", "role", "--role", new.role),
        capabilities=capabilities,
        autonomy_policy=policy,
        session=session,
    )


def _text(name: str, of: str, what: str, text: str) -> str | None:
    with argument(name):
        return within_bound_or_none(of, what, text)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not an agent name: 1 to 64 letters, digits, `.`, `_`, `-`")
    if name in RUNTIMES:
        raise UsageError(f"{name} is the name of a runtime; an agent needs a name of its own")


def _check_runtime(service: Service, runtime: str) -> None:
    known = service.settings.every_runtime
    if runtime not in known:
        error = UsageError(f"{runtime!r} is not a runtime; {KNOWN}", "service runtime list")
        raise with_nearest(error, runtime, (*known, *PROGRAMS))


def _policy(autonomy: str) -> AutonomyPolicy:
    try:
        return AutonomyPolicy(autonomy)
    except ValueError:
        known = ", ".join(AutonomyPolicy)
        error = UsageError(f"{autonomy!r} is not an autonomy policy; they are {known}")
        raise with_nearest(error, autonomy, AutonomyPolicy) from None


def _session(new: NewAgent) -> SessionScope:
    try:
        scope = SessionScope(new.session)
    except ValueError:
        error = UsageError(f"{new.session!r} is not a session scope; use one of {', '.join(SessionScope)}")
        raise with_nearest(error, new.session, SessionScope) from None
    if scope is SessionScope.TREE and new.runtime == SHELL:
        why = f"the {new.runtime} runtime has no sessions to go on in"
        raise UsageError(why, "--session fresh, or another --runtime")
    return scope


def _capabilities(name: str, words: str, policy: AutonomyPolicy) -> tuple[Action, ...]:
    """Return the comma-separated capabilities; refuse implement without a write policy (ruling K3)."""
    capabilities = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    if unknown := [word for word in capabilities if word not in list(Action)]:
        error = UsageError(f"{unknown[0]!r} is not a capability; they are {', '.join(Action)}")
        raise with_nearest(error, unknown[0], Action)
    if not capabilities:
        raise UsageError(f"agent {name} needs at least one capability", "--capabilities ask,review")
    if Action.IMPLEMENT in capabilities and policy not in WRITE_POLICIES:
        raise UsageError(
            f"an agent that implements needs a write policy, not {policy}",
            "--autonomy workspace-write, or --autonomy danger-full-access",
        )
    return tuple(map(Action, capabilities))


def _command(new: NewAgent) -> tuple[str, ...]:
    if new.runtime != SHELL:
        if new.command:
            raise UsageError(f"--command is for the shell runtime; {new.runtime} brings its own program")
        return ()
    try:
        words = tuple(shlex.split(within_bound("agent_command", "--command", new.command)))
    except ValueError as error:
        raise UsageError(f"--command cannot be read: {error}") from None
    if not words:
        example = f"service agent add {shlex.quote(new.name)} --runtime shell --command 'python3 agent.py'"
        raise UsageError("the shell runtime needs a command", example)
    return words
