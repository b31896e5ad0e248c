"""Start a command in a box: leave the host's network, mount the files that the account of agents may see, become that
account.

A forked child enters the box and becomes the command, because entering can't be undone.
"""

import contextlib
import errno
import os
import resource
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from activities.boxes import agent_mounts, bwrap, kernel, network, proxy, seccomp
from activities.boxes.box import Box, Network
from activities.boxes.control_group import MOST_PROCESSES
from activities.boxes.kernel import libc
from activities.boxes.start import Streams, places_of


@dataclass(frozen=True)
class Boxed:
    """The start of a command in its box."""

    argv: tuple[str, ...]
    env: dict[str, str]
    enter: Callable[[Streams], None] | None = None
    """Run by the child, before it becomes the command."""
    waiting: Callable[[], proxy.WaitingProxy | None] = lambda: None
    """Returns the proxy's sockets, or None if the network needs no proxy. Call it once the command has started."""


def describe(box: Box, command: Sequence[str]) -> dict[str, Any]:
    """Return the box as a run's specification stores it, with its mounts for this command planned.

    If planning fails, the supervisor plans again and reports the error.
    """
    layout = None
    if box.uid is not None:
        with contextlib.suppress(OSError):
            layout = agent_mounts.plan(box)
    return {"box": box.as_json(), "argv": list(bwrap.argv(box, command)), "layout": layout and vars(layout)}


@contextmanager
def prepare(description: Mapping[str, Any] | None, command: Sequence[str], env: Mapping[str, str]) -> Iterator[Boxed]:
    """Prepare a command's start in its box; without a box, return the command unchanged.

    Start only the command inside this context. `description` is the return value of `describe`.
    """
    if description is None:
        yield Boxed(tuple(command), dict(env))
        return
    box = Box.from_json(description["box"])
    program = os.path.join(box.cwd, command[0]) if "/" in command[0] else command[0]
    if not any(map(_can_be_run, places_of(program, env))):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    layout = _layout(box, description)
    with contextlib.ExitStack() as stack:
        ours = theirs = None
        if box.network is Network.MODEL:
            ours, theirs = map(stack.enter_context, socket.socketpair())

        def waiting() -> proxy.WaitingProxy | None:
            return proxy.WaitingProxy(box, network.receive_sockets(ours)) if ours else None

        def enter(streams: Streams) -> None:
            with _telling():
                _lay_out(box, layout, theirs, streams)
                _become(box)
                _hold(box)

        yield Boxed(tuple(description["argv"]), network.variables(env) if ours else dict(env), enter, waiting)


def _layout(box: Box, description: Mapping[str, Any]) -> agent_mounts.Layout | None:
    """Return the layout that the caller planned; if it is missing, plan it now and raise OSError if that fails."""
    if layout := description.get("layout"):
        return agent_mounts.Layout(**layout)
    with _telling():
        return None if box.uid is None else agent_mounts.plan(box)


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise OSError(f"the box cannot be made: {error}") from None


def _can_be_run(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)


def _lay_out(box: Box, layout: agent_mounts.Layout | None, channel: socket.socket | None, streams: Streams) -> None:
    """Set up the box's network, mounts and limits."""
    network.enter(box.network)
    if channel is not None:
        network.hand_over(channel, box)
    if layout is not None:
        layout.lay()
        _share(streams, box.uid)
    _limit(box)
    forget_keys()


def _hold(box: Box) -> None:
    """Restrict the privileges and system calls of this process and its children irrevocably."""
    kernel.no_new_privileges()
    if box.network is Network.FULL:
        kernel.leave_abstract_sockets()
    seccomp.install(box.network)
    os.chdir("/")


def _share(streams: Streams, uid: int | None) -> None:
    """Let the account's group open the files of the streams: programs reopen them as `/dev/stdin` and `/dev/stderr`."""
    for stream, mode in zip(streams, (0o640, 0o620, 0o620), strict=True):
        if uid is not None and stat.S_ISREG(os.fstat(stream).st_mode):
            os.fchown(stream, -1, uid)
            os.fchmod(stream, mode)


def _limit(box: Box) -> None:
    """Forbid core files, which hold a program's memory, and limit the account's processes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if box.uid is not None:
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        limit = MOST_PROCESSES if most == resource.RLIM_INFINITY else min(MOST_PROCESSES, most)
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def _become(box: Box) -> None:
    """Become the account of agents, if the service is root."""
    if box.uid is not None:
        os.setgroups([])
        os.setresgid(box.uid, box.uid, box.uid)
        os.setresuid(box.uid, box.uid, box.uid)


JOIN_SESSION_KEYRING = 1


def keyctl() -> int | None:
    """Return the number of the system call `keyctl`; None if it is unknown."""
    return seccomp.number("keyctl")


def forget_keys() -> None:
    """Join a new session keyring, without the keys that the service was started with."""
    if (number := keyctl()) is not None:  # a kernel without keyrings, or a container that refuses them, has none
        libc().syscall(number, JOIN_SESSION_KEYRING, None)
