"""Who has typed the command: a person, or an agent (ruling N5). What agents may call stands in `permitted`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from activities.runs.ancestry import Agent
    from cli.warm.peer import Peer

_typed_by: "Peer | None" = None
"""The process at the other end, where the command was handed over; else it is this one."""


def handed_over_by(peer: "Peer") -> None:
    """This process carries a command out that was typed in another one."""
    global _typed_by
    _typed_by = peer


def agent() -> "Agent | None":
    """Whose agent it was typed by. Who has ended meanwhile cannot be known, and orders nothing."""
    import os

    from activities.runs.ancestry import GoneError, agent_of
    from workflows.model.errors import RefusedError

    try:
        found = agent_of(_typed_by.pid if _typed_by else os.getpid())
    except GoneError:
        found = None
    if _typed_by is not None and not _typed_by.lives:
        raise RefusedError("who typed this has ended: it cannot be told whether that was a person; nothing was done")
    return found


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
