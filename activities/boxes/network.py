"""The network of a run: none but a loopback of its own, on which our proxy listens if there is a model to be reached.

The sockets are opened inside the run's network and handed to the proxy, which stands outside: so nothing of ours has
to run inside, and nothing but those sockets leads out.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from activities.boxes import kernel
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.hosts import Entry

LOOPBACK = "127.0.0.1"
PROXY_PORT = 3128
BACKLOG = 64
MOST_SOCKETS = 253
"""As many as the kernel hands over at once."""


def local_ports(box: Box) -> tuple[int, ...]:
    """Services of this machine that the box may use: they are found at their usual address."""
    named = (entry.port for entry in map(Entry.read, box.hosts) if entry.host == LOOPBACK)
    return tuple(dict.fromkeys(filter(None, named)))


def enter(box: Box) -> None:
    """Leave the machine's network, unless the box has all of it; root also leaves its shared memory in any case.

    Bubblewrap leaves that by itself.
    """
    memory = 0 if box.kind is BoxKind.BWRAP else kernel.CLONE_NEWIPC
    if box.network is Network.FULL or not box.own_network:
        if box.uid is not None and memory:
            kernel.unshare(memory)
        return
    if os.geteuid() == 0:
        kernel.unshare(kernel.CLONE_NEWNET | memory)
    else:
        _unshare_as_nobody_special()
    kernel.loopback_up()


def _unshare_as_nobody_special() -> None:
    """An account that is not root makes a user namespace first, in which it stays who it is."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def listening(box: Box) -> list[socket.socket]:
    """What the proxy listens on: first itself, then a socket for each service of this machine."""
    if box.network is not Network.MODEL:
        return []
    first = PROXY_PORT if box.own_network else 0
    others = local_ports(box) if box.own_network else ()  # without a network of its own it reaches them directly
    return [_listen(port) for port in (first, *others)]


def hand_over(channel: socket.socket, box: Box) -> None:
    """Listen in the network of this process, for who is at the other end of the channel."""
    sockets = listening(box)
    socket.send_fds(channel, [b"1"], [each.fileno() for each in sockets])
    for each in sockets:
        each.close()


def taken_over(channel: socket.socket) -> list[socket.socket]:
    """Return the sockets that were handed over at the other end."""
    _, descriptors, *_ = socket.recv_fds(channel, 1, MOST_SOCKETS)
    return [socket.socket(fileno=each) for each in descriptors]


def _listen(port: int) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((LOOPBACK, port))
    one.listen(BACKLOG)
    return one


def variables(port: int, old: Mapping[str, str]) -> dict[str, str]:
    """By what programs find the proxy. What the machine's own way out was is the proxy's affair now."""
    proxy = f"http://{LOOPBACK}:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    local = f"localhost,{LOOPBACK},::1"
    both = {each: proxy for name in names for each in (name, name.lower())}
    return {**old, **both, "NO_PROXY": local, "no_proxy": local, "NODE_USE_ENV_PROXY": "1"}
