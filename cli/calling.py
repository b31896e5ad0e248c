"""Who has typed the command: a person, or an agent (ruling N5). What agents may call stands in `permitted`."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
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


def handed_over_by(peer: Other) -> None:
    """This process carries a command out that was typed in another one."""
    global _typed_by
    _typed_by = peer


def agent() -> "Agent | None":
    """Whose agent it was typed by. Who has ended meanwhile, or hides what is above it, cannot be known."""
    from activities.runs.ancestry import GoneError, agent_of
    from activities.runs.os_processes import this_process
    from workflows.model.errors import RefusedError

    try:
        found = agent_of(_typed_by.pid if _typed_by else this_process())
    except GoneError:
        found = None
    if _typed_by is not None and not _typed_by.lives:
        raise RefusedError("who typed this has ended: it cannot be told whether that was a person; nothing was done")
    if found is None and _typed_by is None and _is_apart():
        why = "the daemon runs where this process cannot see it, so it cannot be told whether a person typed this"
        raise RefusedError(why, "type it where the daemon runs: in the same container, in no namespace of its own")
    return found


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

    if (found := agent()) is not None:
        from bridge.operations import people
        from bridge.operations.service import Service

        people.refuse(found, f"`service {command}`", INSTEAD.get(command, SAY), Service.locate())


def own_job(said: str) -> str:
    """The job that a command speaks for: an agent speaks for its own."""
    found = agent()
    if found is None or found.job_id in (None, said):
        return said
    from workflows.model.errors import RefusedError

    raise RefusedError(f"this is {found}, and it speaks for no other job than its own", f"--job {found.job_id}")
