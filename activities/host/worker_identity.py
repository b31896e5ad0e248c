"""The name by which Temporal's server knows a worker process, from which its death can be seen."""

import os

from activities.runs.os_processes import identity

_SINCE = " since "


def own(host: str) -> str:
    """Name this process as a worker of a host: its pid, and its start time, since pids are reused."""
    return f"{os.getpid()}@{host}{_SINCE}{identity(os.getpid())}"


def is_dead(name: str, host: str) -> bool:
    """Return whether a name is that of a dead process of this host; False for a name without a start time."""
    who, _, began = name.partition(_SINCE)
    pid, _, where = who.partition("@")
    return where == host and pid.isdecimal() and bool(began) and identity(int(pid)) != began
