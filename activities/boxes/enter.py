"""Starting a command in a box: leave the network, lay out what the account of agents may see, become that account.

A supervisor that is root does that itself where the box has a root of its own, spawns the command there, or bubblewrap,
and goes back. Otherwise a child that is forked does it, and then becomes the command: what it enters cannot be left.
"""

import contextlib
import errno
import os
import resource
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from activities.boxes import (
    bwrap,
    decided_calls,
    kernel,
    keys,
    landlock,
    network,
    own_root,
    proxy,
    seccomp,
    stage,
    way_back,
)
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.control_group import MOST_PROCESSES
from activities.boxes.start import Streams, places_of

PR_SET_SECUREBITS = 28
NO_ROOT_LOCKED = 0b11

OWN_ROOT = "own_root"
"""In what is told of a box: how its root is laid out, where the service makes it without bubblewrap."""

Laid = stage.Layout | own_root.Root


@dataclass(frozen=True)
class Boxed:
    """How to start a command so that it is in its box."""

    argv: tuple[str, ...]
    env: dict[str, str]
    enter: Callable[[Streams], None] | None = None
    """Run by the child, before it becomes the command."""
    visit: Callable[[Streams], AbstractContextManager[None]] | None = None
    """A second way, where it can be had. Inside this context, the process itself is in the box, and its real account is
    that of agents: a program is in the box if it is spawned there and takes that account.
    """
    in_bwrap: bool = False
    waiting: Callable[[], proxy.Waiting | None] = lambda: None
    """Once the command is started: the sockets that its network is, if that takes a proxy."""


def described(box: Box, command: Sequence[str]) -> dict[str, Any]:
    """A box for this command as a run's specification has it, with what is worked out sooner by who asks for the run.

    What cannot be worked out is tried again by the supervisor, which says why.
    """
    root = layout = None
    if box.uid is not None:
        with contextlib.suppress(OSError):
            root = own_root.planned(box)
            layout = None if root else stage.planned(box)
    argv = bwrap.argv(box, command) if box.kind is BoxKind.BWRAP and not root else command
    laid = {OWN_ROOT: root and vars(root), "layout": layout and vars(layout)}
    return {"box": box.as_json(), "argv": list(argv), **laid}


def takes_first(told: Mapping[str, Any] | None) -> bool:
    """Whether the box is made by a supervisor that is the first of a namespace of its own."""
    return bool(told and told.get(OWN_ROOT))


@contextmanager
def boxed(
    told: Mapping[str, Any] | None, command: Sequence[str], env: Mapping[str, str], *, first: bool = False
) -> Iterator[Boxed]:
    """Inside, the command is started, and no more than that: calls that it hands over are answered from the end on.
    Without a box it is what it was.

    What is told of the box is what `described` says of it. `first`: this process is the first of its namespace.
    """
    if told is None:
        yield Boxed(tuple(command), dict(env))
        return
    box = Box.from_json(told["box"])
    program = os.path.join(box.cwd, command[0]) if "/" in command[0] else command[0]
    if not any(map(_can_be_run, places_of(program, env))):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    root = own_root.Root(**told[OWN_ROOT]) if first and takes_first(told) else None
    layout = root or _layout(box, told)
    in_bwrap = box.kind is BoxKind.BWRAP and root is None
    with contextlib.ExitStack() as stack:
        ours = theirs = None
        here, ports, variables = [], network.local_ports(box), dict(env)
        if box.network is Network.MODEL:
            if box.own_network:
                ours, theirs = map(stack.enter_context, socket.socketpair())
            else:
                here = network.listening(box)
            port = here[0].getsockname()[1] if here else network.PROXY_PORT
            variables, ports = network.variables(port, variables), (port, *ports)
        outside = stack.enter_context(_deciding(box)) if box.kind is BoxKind.LANDLOCK else None

        def waiting() -> proxy.Waiting | None:
            sockets = network.taken_over(ours) if ours else here
            return proxy.Waiting(box, sockets) if sockets else None

        def enter(streams: Streams) -> None:
            with _telling():
                _lay_out(box, layout, theirs, streams)
                _become(box)
                _hold(box, ports, outside, in_bwrap=in_bwrap)

        @contextmanager
        def visit(streams: Streams) -> Iterator[None]:
            with way_back.kept():
                with _telling():
                    _lay_out(box, layout, theirs, streams)
                    _hold(box, ports, None, in_bwrap=in_bwrap)
                    _really_become(box)
                yield

        can_leave = box.kind is BoxKind.BWRAP and box.uid is not None
        way_in = visit if can_leave else None
        argv = _argv(box, told, command) if in_bwrap else command
        yield Boxed(tuple(argv), variables, enter, way_in, in_bwrap, waiting)


def _argv(box: Box, told: Mapping[str, Any], command: Sequence[str]) -> Sequence[str]:
    """Bubblewrap's, also where the box was to be made without it, and in the form that an earlier release knew."""
    return bwrap.argv(box, command) if takes_first(told) or told.get("root") else told["argv"]


def _layout(box: Box, told: Mapping[str, Any]) -> stage.Layout | None:
    """As it was worked out by who asked for the run, or worked out now, which says why it could not be."""
    if layout := told.get("layout"):
        return stage.Layout(**layout)
    with _telling():
        return None if box.uid is None else stage.planned(box)


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise OSError(f"the box cannot be made: {error}") from None


def _can_be_run(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)


def _lay_out(box: Box, layout: Laid | None, channel: socket.socket | None, streams: Streams) -> None:
    """The box's network, what its account sees, and how much it may take."""
    network.enter(box)
    if channel is not None:
        network.hand_over(channel, box)
    if layout is not None:
        layout.lay()
        _share(streams, box.uid)
    _limit(box)
    keys.forget()


@contextmanager
def _deciding(box: Box) -> Iterator[socket.socket]:
    """Serve the calls of the command that is started inside which the box's filter hands over."""
    here, there = socket.socketpair()
    with here, there:
        yield there
        decided_calls.decide(here, box.uid)


def _hold(box: Box, ports: Sequence[int], outside: socket.socket | None, *, in_bwrap: bool) -> None:
    """No program that is started from here on gains rights, or reaches what the box withholds. It cannot be undone: a
    supervisor that goes back out of the box stays held to this part of it.
    """
    kernel.no_new_privileges()
    places = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in landlock.writable(box)] if outside else []
    if box.kind is BoxKind.LANDLOCK or (box.network is Network.FULL and landlock.abi() >= 6):
        landlock.restrict(box, ports)
    listener = seccomp.install(box)
    if outside:
        decided_calls.tell(outside, listener, places)
    os.chdir("/" if in_bwrap else box.cwd)


def _share(streams: Streams, uid: int | None) -> None:
    """`/dev/stdin` and `/dev/stderr` open the files behind them anew, as the account of agents: its group may, and no
    other account."""
    for each, mode in zip(streams, (0o640, 0o620, 0o620), strict=True):
        if uid is not None and stat.S_ISREG(os.fstat(each).st_mode):
            os.fchown(each, -1, uid)
            os.fchmod(each, mode)


def _limit(box: Box) -> None:
    """No core files, which hold what a program had in memory. Processes are counted by account."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if box.uid is not None:
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        limit = MOST_PROCESSES if most == resource.RLIM_INFINITY else min(MOST_PROCESSES, most)
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def _become(box: Box) -> None:
    """Be the account of agents. A root that cannot lay things out for it stays root, and has no power of root's."""
    if box.uid is not None:
        os.setgroups([])
        os.setresgid(box.uid, box.uid, box.uid)
        os.setresuid(box.uid, box.uid, box.uid)
    elif os.geteuid() == 0:
        kernel.checked(kernel.libc().prctl(PR_SET_SECUREBITS, NO_ROOT_LOCKED, 0, 0, 0), "prctl")
        kernel.give_no_capabilities()


def _really_become(box: Box) -> None:
    """Be the account of agents, but for the effective account, which stays root: so this process can go back.

    A program that is spawned with `resetids` takes the real account as its effective one, and is root in nothing.
    """
    assert box.uid is not None
    os.setgroups([])
    os.setresgid(box.uid, -1, -1)
    os.setresuid(box.uid, -1, -1)
