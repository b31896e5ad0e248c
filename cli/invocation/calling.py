"""Identification of the caller: a person or an agent (ruling N5). Agents may call what `permitted` lists."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import NoReturn

    from activities.runs.ancestry import AgentProcess


class Other(Protocol):
    """The process in which the command was typed, if that is another one."""

    @property
    def pid(self) -> int: ...

    @property
    def lives(self) -> bool:
        """True while the process is running, so that no other process has its pid."""
        ...


_typed_by: Other | None = None
"""The client's process if the command was handed over; else None."""
_IN_SIGHT = (
    "type it where /proc shows the daemon and every process above yours: "
    "on the same machine or in the same container, in no namespace of its own"
)


def handed_over_by(peer: Other) -> None:
    """Record the process in which the command was typed, if that is not this one."""
    global _typed_by
    _typed_by = peer


def agent() -> "AgentProcess | None":
    """Return the agent that typed the command, and None for people. Raise `UnknownCallerError` if that is unknown."""
    from activities.runs.ancestry import UntoldError, agent_of
    from activities.runs.os_processes import this_process

    why, caller = "", None
    try:
        caller = agent_of(_typed_by.pid if _typed_by else this_process())
    except UntoldError as error:
        why = str(error)
    if _typed_by is not None and not _typed_by.lives:
        why = "the calling process has exited, so it can't be checked that a person ran this; nothing was done"
        _refuse_unknown(why, "type it again, in a process that waits until it is done")
    if not why and caller is None and _typed_by is None and _is_apart():
        why = "the daemon runs where this process cannot see it"
    if why:
        _refuse_unknown(f"{why}, so it can't be checked that a person ran this", _IN_SIGHT)
    return caller


def _refuse_unknown(why: str, instead: str) -> "NoReturn":
    from bridge.operations.refused_agents import (
        UnknownCallerError,  # imported late: slow to load, and people never need it
    )

    raise UnknownCallerError(why, instead)


def _is_apart() -> bool:
    """Return whether the daemon's pid is not visible here, as in another pid namespace. Then agents' supervisors aren't
    visible either.
    """
    from activities.runs.os_processes import identity
    from activities.settings.home import Home
    from bridge.machine.locks import holder

    pid = holder(Home.locate().daemon_lock)
    return pid is not None and identity(pid) is None


def for_people(command: str) -> None:
    """Refuse the command if an agent calls it, and suggest an alternative."""
    from cli.invocation.permitted import INSTEAD, SAY

    refuse_agents(f"`service {command}`", INSTEAD.get(command, SAY))


def refuse_agents(what: str, instead: str) -> None:
    """Raise if an agent calls, or if the caller is unknown. An agent's call is recorded as an event of its tree."""
    if (caller := agent()) is not None:
        from bridge.operations import refused_agents
        from bridge.operations.service import Service

        refused_agents.refuse(caller, what, instead, Service.locate())


def own_job(job_id: str) -> str:
    """Return the job a command speaks for. An agent may only name its own."""
    caller = agent()
    if caller is None or caller.job_id in (None, job_id):
        return job_id
    from workflows.model.errors import RefusedError

    raise RefusedError(f"this is {caller}, and it speaks for no other job than its own", f"--job {caller.job_id}")
