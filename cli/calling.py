"""Who has typed the command: a person, or an agent (ruling N5). What agents may call stands in `permitted`."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import NoReturn

    from activities.runs.ancestry import Agent


class Other(Protocol):
    """Another process."""

    @property
    def pid(self) -> int: ...

    @property
    def lives(self) -> bool:
        """It has not ended, so that its number is still its own."""
        ...


_typed_by: Other | None = None
"""The process at the other end, where the command was handed over; else it is this one."""
_IN_SIGHT = (
    "type it where /proc shows the daemon and every process above yours: "
    "on the same machine or in the same container, in no namespace of its own"
)


def handed_over_by(peer: Other) -> None:
    """This process carries a command out that was typed in another one."""
    global _typed_by
    _typed_by = peer


def agent() -> "Agent | None":
    """Return whose agent typed the command, and None for people. Raise `UnknownCallerError` where nothing tells."""
    from activities.runs.ancestry import UntoldError, agent_of
    from activities.runs.os_processes import this_process

    why, found = "", None
    try:
        found = agent_of(_typed_by.pid if _typed_by else this_process())
    except UntoldError as error:
        why = str(error)
    if _typed_by is not None and not _typed_by.lives:
        why = "who typed this has ended: it cannot be told whether that was a person; nothing was done"
        _refuse_unknown(why, "type it again, in a process that waits until it is done")
    if not why and found is None and _typed_by is None and _is_apart():
        why = "the daemon runs where this process cannot see it"
    if why:
        _refuse_unknown(f"{why}, so it cannot be told whether a person typed this", _IN_SIGHT)
    return found


def _refuse_unknown(why: str, instead: str) -> "NoReturn":
    from bridge.operations.people import UnknownCallerError  # takes its time, and people need it never

    raise UnknownCallerError(why, instead)


def _is_apart() -> bool:
    """Whether the daemon of this home has numbers of processes that are not ours: then supervisors cannot be seen."""
    from activities.runs.os_processes import identity
    from activities.settings.home import Home
    from bridge.machine.locks import holder

    pid = holder(Home.locate().daemon_lock)
    return pid is not None and identity(pid) is None


def for_people(command: str) -> None:
    """Refuse the command to an agent, by name, with what it can do instead."""
    from cli.permitted import INSTEAD, SAY

    refuse_agents(f"`service {command}`", INSTEAD.get(command, SAY))


def refuse_agents(what: str, instead: str) -> None:
    """Raise if an agent has called, or if it cannot be told who has; an agent's call is an event of its tree."""
    if (found := agent()) is not None:
        from bridge.operations import people
        from bridge.operations.service import Service

        people.refuse(found, what, instead, Service.locate())


def own_job(said: str) -> str:
    """The job that a command speaks for: an agent speaks for its own."""
    found = agent()
    if found is None or found.job_id in (None, said):
        return said
    from workflows.model.errors import RefusedError

    raise RefusedError(f"this is {found}, and it speaks for no other job than its own", f"--job {found.job_id}")
