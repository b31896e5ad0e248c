"""Preflight: checks that every worker of a set is available before any job of it starts (ruling C6)."""

from collections.abc import Iterator, Mapping, Sequence

from workflows.contract.faults import did_you_mean
from workflows.contract.graph import topological
from workflows.contract.models import WRITE_POLICIES, Action, Delegation, Ephemeral, Runtime
from workflows.contract.worktree_names import merged_leg
from workflows.model.event_kinds import Data, EventKind
from workflows.model.refusals import Refusal
from workflows.model.settings import TreeSettings
from workflows.model.workers import Worker
from workflows.text.plurals import quantity

NO_AGENT = "is the name of a runtime, not of an agent"
RUNTIME_NAMES = frozenset({*(each.value for each in Runtime), "shell"})
PROGRAM_NAMES = frozenset({"codex", "claude", "kimi"})
"""The programs of the runtimes; people and agents call these runtimes too."""
READ_ONLY = (
    "this task only reads, because whoever started it may only ask (a token of scope ask, or a comment):"
    " delegate ask or review, and say in your result what is to be changed"
)
ALTERNATIVE = 'or use "ephemeral": {"runtime": ...} instead of "agent" for a throwaway worker'


def check(
    delegations: Sequence[Delegation],
    agents: Sequence[Worker],
    settings: TreeSettings,
    templates: Sequence[str] = (),
    *,
    works: Sequence[str] = (),
    read_only: bool = False,
) -> Refusal | None:
    """Return one refusal with all faults of a set of delegations, or None; a faulty set is not dispatched at all.

    `works` are the legs whose work a leg could merge (ruling O6). In a `read_only` tree no leg may implement: whoever
    started it may only ask (ruling N5).
    """
    by_name = {agent.name: agent for agent in agents}
    faults = [*_shape(delegations)]
    for index, delegation in enumerate(delegations):
        prefix = f'delegations[{index}] (id "{delegation.id}"): '
        if read_only and delegation.action is Action.IMPLEMENT:
            faults.append(prefix + READ_ONLY)
        faults += [prefix + fault for fault in _faults(delegation, by_name, settings, templates)]
        faults += [prefix + fault for fault in _merge(delegation, works)]
    if not faults:
        return None
    valid = sorted(by_name)
    count = f"{quantity(len(faults), 'fault')} in a set of {quantity(len(delegations), 'delegation')}"
    message = f"{count}: {'; '.join(faults)}"
    data: Data = {"faults": faults, "valid_agents": valid, "alternative": ALTERNATIVE}
    return Refusal(EventKind.DELEGATION_PREFLIGHT_FAILED, message, data)


def _shape(delegations: Sequence[Delegation]) -> Iterator[str]:
    """Yield faults in ids and dependencies, with which a set could never settle. Validation should have found them."""
    deps = {each.id: each.deps for each in delegations}
    if len(deps) < len(delegations):
        yield "two delegations have the same id"
    elif topological(deps) is None:
        yield "deps name an unknown sibling or form a cycle"


def _faults(
    delegation: Delegation, agents: Mapping[str, Worker], settings: TreeSettings, templates: Sequence[str]
) -> Iterator[str]:
    if (delegation.agent is None) == (delegation.ephemeral is None):
        yield "exactly one of agent and ephemeral must be set"
    elif delegation.ephemeral is not None:
        yield from _ephemeral(delegation.ephemeral, delegation.action, settings, templates)
    elif delegation.agent is not None:
        yield from _registered_agent(delegation.agent, delegation.action, agents, settings)


def _registered_agent(name: str, action: Action, agents: Mapping[str, Worker], settings: TreeSettings) -> Iterator[str]:
    agent = agents.get(name)
    names = {*RUNTIME_NAMES, *PROGRAM_NAMES, *settings.runtimes, *settings.configured_runtimes}
    if agent is None and not names.isdisjoint((name, name.lower())):
        yield f'"{name}" {NO_AGENT}: name a registered agent, or an ephemeral worker'
        return
    if agent is None:
        yield f'agent "{name}" is unknown or not allowed on this repository'
        return
    if action not in agent.capabilities:
        yield f'agent "{name}" lacks the capability {action}'
    if action is Action.IMPLEMENT and agent.autonomy_policy not in WRITE_POLICIES:
        yield f'agent "{name}" may not write: implement needs autonomy_policy workspace-write or danger-full-access'


def _merge(delegation: Delegation, works: Sequence[str]) -> Iterator[str]:
    leg = merged_leg(delegation.worktree)
    if leg and leg not in {*works, *delegation.deps}:
        there = f"there are: {', '.join(works) or 'none'}{did_you_mean(leg, works)}"
        yield f'worktree "{delegation.worktree}" names no leg of this task with work to merge; {there}'


def _ephemeral(worker: Ephemeral, action: Action, settings: TreeSettings, templates: Sequence[str]) -> Iterator[str]:
    """Yield the faults of an ephemeral worker. Its template, if any, must be the name of a registered agent."""
    if worker.runtime not in settings.configured_runtimes:
        configured = ", ".join(settings.configured_runtimes) or "none"
        yield f"runtime {worker.runtime.value} is not configured here (configured: {configured})"
    writes = action is Action.IMPLEMENT or Action.IMPLEMENT in worker.capabilities
    if writes and worker.autonomy_policy not in WRITE_POLICIES:
        yield "an implement worker needs autonomy_policy workspace-write or danger-full-access"
    if worker.template and worker.template not in templates:
        there = ", ".join(templates) or "none"
        yield f'ephemeral.template "{worker.template}" is not a registered agent with a template (there are: {there})'
