"""`service init`, from nothing to the first useful job in a repository: survey, plan, registration."""

import contextlib
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from activities.agents.adapter import CannotLaunchError
from activities.git import hub
from activities.git.checkout import top_level
from activities.git.hub import HubAwayError, HubRefusesError
from activities.git.remotes import remotes, without_credentials
from activities.git.work_folder.worktrees import commit_of
from activities.host import boxing
from activities.runtimes.known_runtimes import SHELL
from activities.store.registry.agent_rows import Agent
from activities.store.registry.repo_rows import Repo
from bridge.machine import daemon_state
from bridge.operations import settings
from bridge.operations.health.runtimes import RuntimeStatus
from bridge.operations.jobs import hosts
from bridge.operations.registry import agents, repos
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service
from workflows.contract.models import Action, AutonomyPolicy
from workflows.github.repository_name import github_of_remotes, host_of
from workflows.model.errors import Commands, RefusedError, ServiceError, UsageError

LEAD, BUILDER, CHECKER = "lead", "builder", "checker"


class Standing(StrEnum):
    """What `service init` does with a member of the team."""

    NEW = "registered"
    """The name is free: the agent is registered, for this repository."""
    ALLOWED = "allowed"
    """The agent was registered with no more rights; now it may also work on this repository."""
    THERE = "already there"
    """The agent was registered already, and may work on this repository."""
    OTHER = "left alone"
    """Another agent has the name, and may not work on this repository."""


@dataclass(frozen=True)
class TeamMember:
    """One agent of the team."""

    new: NewAgent
    standing: Standing
    runtime: str
    """Its runtime; a registered agent keeps its own."""


@dataclass(frozen=True)
class Programs:
    """The runtimes of the team."""

    builder: str
    checker: str


QUESTION = "Name the main folders of this repository in one sentence. Change nothing, ask nothing, delegate nothing."
"""The tiny job that proves that everything works."""

FIRST = (
    (Action.ASK, LEAD, "What does this repository do, and what would you improve first?"),
    (Action.IMPLEMENT, BUILDER, "Correct the mistakes of spelling in the README"),
    (Action.REVIEW, CHECKER, "Review the last commit"),
)
"""The first jobs that are suggested."""
COMMANDS = 3
ENOUGH = 2
"""With so many hosts, `service init` does not suggest another."""
ORIGIN = "origin"
"""The remote that hosts which share a store exchange work through."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Checkout:
    """The repository of the current folder."""

    top: Path
    github: str
    """Its name on GitHub, OWNER/NAME, read from its remotes; empty without one."""
    known: tuple[str, ...]
    """The names it is registered under."""
    elsewhere: str = ""
    """The name under which other hosts have registered the checkout's remote; empty if none has."""
    remote: str = ""
    """The address of its remote `origin`, where hosts share the store."""
    alone: ServiceError | None = None
    """Why only this host can work on it although hosts share the store."""

    @property
    def name(self) -> str:
        """Return the name it is registered under, else the suggested one."""
        folder = _NOT_IN_A_NAME.sub("-", self.top.name).strip("-._")[:100]
        return next(iter(self.known), "") or self.elsewhere or self.github or f"local/{folder or 'repository'}"


@dataclass(frozen=True)
class InitPlan:
    """The changes that `service init` will make for a repository."""

    checkout: Checkout
    repo: str
    members: tuple[TeamMember, ...]

    @property
    def is_known(self) -> bool:
        """Return whether the repository is registered already."""
        return self.repo in self.checkout.known

    @property
    def is_elsewhere(self) -> bool:
        """Return whether other hosts work on it already, by its remote."""
        return self.repo == self.checkout.elsewhere

    @property
    def changes(self) -> bool:
        """Return whether anything would be registered."""
        open_ = (Standing.NEW, Standing.ALLOWED)
        return not self.is_known or any(each.standing in open_ for each in self.members)


def checkout(service: Service, folder: Path) -> Checkout:
    """Return the repository of a folder; raise if jobs could not work on it."""
    top = top_level(folder)
    commit_of(top, "HEAD")
    every, named = repos.every(service), remotes(top)
    known = [each for each in every if each.checkouts.get(service.settings.host) == str(top)]
    github = github_of_remotes(named, host_of(service.settings.github.web))
    elsewhere = "" if known else _elsewhere(service, every, top, named.get(ORIGIN, ""), github)
    return Checkout(top, known[0].github if known else github, tuple(each.name for each in known), elsewhere)


def _elsewhere(service: Service, every: Iterable[Repo], top: Path, origin: str, github: str) -> str:
    """Return the name of the repository that has this remote, if this host has no checkout of it yet."""
    url, here = "", service.settings.host
    with contextlib.suppress(ServiceError):
        url = repos.address(origin, top) if origin else ""
    candidates = (each for each in every if each.remote and here not in each.checkouts)
    same = (each.name for each in candidates if each.remote == url or (github and each.github == github))
    return next(same, "") if service.settings.is_fleet else ""


def reach(service: Service, checkout: Checkout) -> Checkout:
    """Check whether the checkout's remote answers, if hosts share the store and it is not registered yet. Change
    nothing.
    """
    if not service.settings.is_fleet or checkout.known:
        return checkout
    url = remotes(checkout.top).get(ORIGIN)
    if url is None:
        add = f"git -C {shlex.quote(str(checkout.top))} remote add {ORIGIN} URL"
        return replace(checkout, alone=RefusedError(f"it has no remote {ORIGIN}", add))
    try:
        url = repos.address(url, checkout.top)
        hub.reach(url)
    except ServiceError as why:
        clean = without_credentials(url)
        return replace(checkout, remote=clean if clean.isprintable() else "", alone=why)
    return replace(checkout, remote=url)


def name_of(service: Service, remote: str) -> str:
    """Return the name that a remote's address suggests; raise if it suggests none."""
    if name := github_of_remotes({ORIGIN: remote}, host_of(service.settings.github.web)):
        return name
    raise UsageError("type a name, OWNER/NAME: the remote's address suggests none")


def check_name(service: Service, checkout: Checkout | None, name: str) -> None:
    """Raise if the repository can't have this name, or if another one has it. `checkout` is None for a repository
    registered by its remote.
    """
    repos.check_name(name)
    if checkout and checkout.known and name not in checkout.known:
        known = ", ".join(checkout.known)
        raise RefusedError(
            f"{checkout.top} is registered already, as {known}", f"service init --name {checkout.known[0]}"
        )
    taken = next((each for each in repos.every(service) if each.name == name), None)
    if taken and not (checkout and (checkout.known or name == checkout.elsewhere)):
        here = shlex.quote(str(checkout.top)) if checkout else "--remote URL"
        hint = Commands("service init --name OWNER/NAME", f"service repo add {name} {here}")
        raise RefusedError(f"{name} is registered already, for {taken.path or taken.remote}", hint)


def plan(service: Service, checkout: Checkout, name: str, programs: Programs) -> InitPlan:
    """List the registrations that are missing, and those that exist. Nothing is changed."""
    check_name(service, checkout, name)
    return InitPlan(checkout, name, tuple(members(programs, name, agents.every(service), service.settings.builds_with)))


def unheld(service: Service, plan: InitPlan) -> dict[str, CannotLaunchError]:
    """Return the team's runtimes that no box of this machine can confine, each with the reason and the remedy."""
    used = {each.runtime for each in plan.members}
    named = {name for name in used if service.settings.runtime(name).box != "auto"}
    refusals = {name: boxing.refusal(service.settings, name) for name in sorted(used - named)}
    return {name: why for name, why in refusals.items() if why}


def unbox(service: Service, runtimes: Iterable[str]) -> None:
    """Change the settings so that agents of these runtimes run without a box."""
    for runtime in runtimes:
        settings.put(service, f"runtimes.{runtime}", 'box = "none"')


def carry_out(service: Service, plan: InitPlan) -> tuple[Repo, InitPlan]:
    """Register everything that is missing; after an error, undo what was registered. Return the plan as it was carried
    out: without the remote if that refuses pushes.
    """
    with contextlib.ExitStack() as undo:
        if not plan.is_known:
            plan = _add(service, plan)
            if not plan.is_elsewhere:
                undo.callback(repos.remove, service, plan.repo)
        for member in plan.members:
            if member.standing is Standing.NEW:
                agents.add(service, member.new)
                undo.callback(agents.remove, service, member.new.name)
            elif member.standing is Standing.ALLOWED:
                agents.allow(service, member.new.name, plan.repo)
                undo.callback(agents.deny, service, member.new.name, plan.repo)
        undo.pop_all()
    return repos.get(service, plan.repo), plan


def _add(service: Service, plan: InitPlan) -> InitPlan:
    """Register the checkout with its remote, or without it if the remote refuses pushes."""
    checkout = plan.checkout
    if checkout.remote and not checkout.alone and not plan.is_elsewhere:
        try:
            repos.add(service, plan.repo, checkout.top, remote=checkout.remote)
        except (HubAwayError, HubRefusesError, UsageError) as why:
            plan = replace(plan, checkout=replace(checkout, alone=why))
        else:
            return plan
    repos.add(service, plan.repo, checkout.top)
    return plan


def runs(service: Service) -> bool:
    """Return whether the daemon of this home is running."""
    return daemon_state.status(service.home).running


def may_be_tried(
    service: Service, plan: InitPlan, usable: Sequence[RuntimeStatus], unboxed: Collection[str] = ()
) -> bool:
    """Return whether the lead could work after `carry_out`.

    The lead must be allowed on this repository, its program must work, and it must have a working box or need none.
    """
    lead = next(each for each in plan.members if each.new.name == LEAD)
    if lead.runtime not in unboxed and boxing.refusal(service.settings, lead.runtime):
        return False
    ours = lead.standing in (Standing.NEW, Standing.ALLOWED)
    return lead.runtime in {SHELL, *(each.name for each in usable if each.works)} and (
        ours or _may(service, LEAD, Action.ASK, plan.repo)
    )


def able(service: Service, plan: InitPlan) -> list[tuple[Action, str, str]]:
    """Return the suggested first jobs that an agent is able and allowed to do: action, agent and message."""
    return [each for each in FIRST if _may(service, each[1], each[0], plan.repo)]


def next_commands(service: Service, plan: InitPlan, usable: Sequence[RuntimeStatus]) -> list[str]:
    """Return the commands to type next, in this order; each can be run without changes."""
    working = {each.name for each in usable if each.works}
    lacking = next((each.runtime for each in plan.members if each.runtime not in {*working, SHELL}), None)
    look = [f"service runtime check {service.settings.program_name(lacking)}"] if lacking else []
    start = [] if runs(service) else ["service daemon start"]
    jobs = [f'service agent {do} {who} "{what}" --repo {plan.repo} --wait' for do, who, what in able(service, plan)]
    invite = ["service host invite"] if service.settings.is_fleet and len(hosts.every(service)) < ENOUGH else []
    return [*look, *start, *jobs[: 2 - len(invite)], *invite, "service attention", "service job list"][:COMMANDS]


def is_boxed(service: Service, plan: InitPlan) -> bool:
    """Return whether every agent that would be registered runs in a box."""
    sections = service.settings.runtimes
    new = [each.runtime for each in plan.members if each.standing is Standing.NEW]
    return bool(new) and not any(name in sections and sections[name].box == "none" for name in new)


def as_json(repo: Repo, plan: InitPlan, runtimes: Sequence[RuntimeStatus]) -> dict[str, Any]:
    """Return the JSON for `--json`: what was registered."""
    return {
        "repository": asdict(repo) | {"new": not plan.is_known},
        "remote_error": plan.checkout.alone.message if plan.checkout.alone else "",
        "runtimes": runtimes,
        "agents": [
            {"name": member.new.name, "runtime": member.runtime, "standing": member.standing.value}
            for member in plan.members
        ],
    }


def _may(service: Service, name: str, action: Action, repo: str) -> bool:
    try:
        agents.get(service, name).check(action, repo)
    except ServiceError:
        return False
    return True


def usable(runtimes: Sequence[RuntimeStatus]) -> list[RuntimeStatus]:
    """Return the runtimes that work, known logins first; if none does, those that lack only a login."""
    programs = [each for each in runtimes if each.name != SHELL]
    working = sorted((each for each in programs if each.works), key=lambda runtime: runtime.logged_in is not True)
    usable = working or [each for each in programs if each.version and each.logged_in is False]
    if not usable:
        why = "; ".join(f"{each.program}: {each.says}" for each in programs)
        fixes = [each.fix for each in programs if each.fix]
        raise RefusedError(
            f"nothing was registered: one agent program is needed, and none works ({why}); the demo needs none",
            Commands(*fixes, "service init", "service demo"),
        )
    return usable


def choose(usable: Sequence[RuntimeStatus], builder: str | None = None, checker: str | None = None) -> Programs:
    """Return the chosen runtimes; by default the first one builds, and another one checks if there is one."""
    names, programs = [each.name for each in usable], {each.program: each.name for each in usable}
    builder, checker = programs.get(builder or "", builder), programs.get(checker or "", checker)
    for wanted in (builder, checker):
        if wanted is not None and wanted not in names:
            raise UsageError(f"{wanted!r} cannot be used here; there is {', '.join(programs)}", "service runtime check")
    builds = builder or next((name for name in names if name != checker), names[0])
    return Programs(builds, checker or next((name for name in names if name != builds), builds))


def members(
    programs: Programs, repo: str, registered: Sequence[Agent], builds_with: Callable[[str], AutonomyPolicy]
) -> list[TeamMember]:
    """Return the team for a repository, each with the agent that has its name already.

    Builder and checker get the policy with which their runtime's program can run builds and tests.
    """
    known = {agent.worker.name: agent for agent in registered}
    return [_member(new, known.get(new.name)) for new in _team(programs, repo, builds_with)]


def _member(new: NewAgent, known: Agent | None) -> TeamMember:
    if known is None:
        return TeamMember(new, Standing.NEW, new.runtime)
    worker = known.worker
    if set(new.repos) <= set(known.repos):
        standing = Standing.THERE
    elif ",".join(worker.capabilities) == new.capabilities and _has_no_more(worker.autonomy_policy, new.autonomy):
        standing = Standing.ALLOWED
    else:
        standing = Standing.OTHER
    return TeamMember(new, standing, worker.runtime)


def _has_no_more(policy: AutonomyPolicy, wanted: str) -> bool:
    order = list(AutonomyPolicy)
    return order.index(policy) <= order.index(AutonomyPolicy(wanted))


def _team(programs: Programs, repo: str, builds_with: Callable[[str], AutonomyPolicy]) -> list[NewAgent]:
    looks, reads = f"{Action.ASK},{Action.REVIEW}", AutonomyPolicy.READ_ONLY
    builds, checks = builds_with(programs.builder), builds_with(programs.checker)
    return [
        _agent(LEAD, programs.builder, looks, reads, "plans the work, hands it out and sums it up", repo),
        _agent(BUILDER, programs.builder, Action.IMPLEMENT, builds, "changes the code and tests the change", repo),
        _agent(CHECKER, programs.checker, Action.REVIEW, checks, "runs the tests, reviews what others changed", repo),
    ]


def _agent(name: str, runtime: str, capabilities: str, autonomy: str, role: str, repo: str) -> NewAgent:
    return NewAgent(name, runtime, capabilities=str(capabilities), autonomy=str(autonomy), role=role, repos=(repo,))
