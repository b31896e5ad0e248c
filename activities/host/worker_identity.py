"""The name by which the server knows a worker process: who sees it can tell whether that process is dead."""

import os

from activities.runs.os_processes import identity

_SINCE = " since "


def own(host: str) -> str:
    """The name of this process, as a worker of a host: its pid, and when it began, for pids are given again."""
    return f"{os.getpid()}@{host}{_SINCE}{identity(os.getpid())}"


def is_dead(name: str, host: str) -> bool:
    """Whether a name is that of a process of this host which is gone. Of a name that says less, nobody knows."""
    who, _, began = name.partition(_SINCE)
    pid, _, where = who.partition("@")
    return where == host and pid.isdecimal() and bool(began) and identity(int(pid)) != began
