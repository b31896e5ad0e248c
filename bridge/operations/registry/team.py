"""The team that `service init` registers: its members, the runtimes they use, which of them exist already."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from activities.runtimes.table import SHELL
from activities.store.registry.agents import Agent
from bridge.operations.health.runtimes import Runtime
from bridge.operations.registry.agents import NewAgent
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.errors import Commands, RefusedError, UsageError

LEAD, BUILDER, CHECKER = "lead", "builder", "checker"


class Standing(StrEnum):
    """The change that `service init` makes for a member."""

    NEW = "registered"
    """The name is free: the agent is registered, for this repository."""
    ALLOWED = "allowed"
    """It is registered with no more rights for other repositories, and is now allowed on this one too."""
    THERE = "already there"
    """It is registered, and may work on this repository."""
    OTHER = "left alone"
    """Another agent has the name, and may not work on this repository."""


@dataclass(frozen=True)
class Member:
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


def usable(found: Sequence[Runtime]) -> list[Runtime]:
    """Return the runtimes that work, known logins first; if none does, those that lack only a login."""
    programs = [each for each in found if each.name != SHELL]
    working = sorted((each for each in programs if each.works), key=lambda each: each.logged_in is not True)
    usable = working or [each for each in programs if each.version and each.logged_in is False]
    if not usable:
        why = "; ".join(f"{each.program}: {each.says}" for each in programs)
        fixes = [each.fix for each in programs if each.fix]
        raise RefusedError(
            f"nothing was registered: one agent program is needed, and none works ({why}); the demo needs none",
            Commands(*fixes, "service init", "service demo"),
        )
    return usable


def choose(usable: Sequence[Runtime], builder: str | None = None, checker: str | None = None) -> Programs:
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
) -> list[Member]:
    """Return the team for a repository, each with the agent that has its name already.

    Builder and checker get the policy with which their runtime's program can run builds and tests.
    """
    known = {agent.worker.name: agent for agent in registered}
    return [_member(new, known.get(new.name)) for new in _team(programs, repo, builds_with)]


def _member(new: NewAgent, known: Agent | None) -> Member:
    if known is None:
        return Member(new, Standing.NEW, new.runtime)
    worker = known.worker
    if set(new.repos) <= set(known.repos):
        standing = Standing.THERE
    elif ",".join(worker.capabilities) == new.capabilities and _has_no_more(worker.autonomy_policy, new.autonomy):
        standing = Standing.ALLOWED
    else:
        standing = Standing.OTHER
    return Member(new, standing, worker.runtime)


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
