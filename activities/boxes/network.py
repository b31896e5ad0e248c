"""A run's network: only a private loopback device, on which the service's proxy listens if the run may reach hosts.

The sockets are opened inside the run's network namespace and handed to the proxy outside. So no process of the service
runs inside, and only those sockets lead out.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from activities.boxes import kernel
from activities.boxes.allowed_hosts import HostEntry
from activities.boxes.box import Box, Network

LOOPBACK = "127.0.0.1"
PROXY_PORT = 3128
BACKLOG = 64
MOST_SOCKETS = 253
"""The most descriptors that the kernel passes at once."""


def local_ports(box: Box) -> tuple[int, ...]:
    """Return the ports of this machine's services that the box may use. In the box they have the same address."""
    named = (entry.port for entry in map(HostEntry.read, box.hosts) if entry.host == LOOPBACK)
    return tuple(dict.fromkeys(filter(None, named)))


def enter(network: Network) -> None:
    """Enter a new network namespace, unless the box may use the whole network."""
    if network is Network.FULL:
        return
    if os.geteuid() == 0:
        kernel.unshare(kernel.CLONE_NEWNET)
    else:
        _unshare_as_nobody_special()
    kernel.loopback_up()


def _unshare_as_nobody_special() -> None:
    """Enter a new network namespace, together with a new user namespace, which accounts other than root need for that.
    The account keeps its id.
    """
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNET)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def hand_over(channel: socket.socket, box: Box) -> None:
    """Listen in this process's network, and send the sockets to the other end of the channel: the proxy's first, then
    one for each service of this machine.
    """
    sockets = [_listen(port) for port in (PROXY_PORT, *local_ports(box))]
    socket.send_fds(channel, [b"1"], [each.fileno() for each in sockets])
    for listener in sockets:
        listener.close()


def receive_sockets(channel: socket.socket) -> list[socket.socket]:
    """Return the sockets that the other end handed over."""
    _, descriptors, *_ = socket.recv_fds(channel, 1, MOST_SOCKETS)
    return [socket.socket(fileno=each) for each in descriptors]


def _listen(port: int) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((LOOPBACK, port))
    one.listen(BACKLOG)
    return one


def variables(old: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables by which programs find the box's proxy instead of the machine's own."""
    proxy = f"http://{LOOPBACK}:{PROXY_PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    local = f"localhost,{LOOPBACK},::1"
    both = {each: proxy for name in names for each in (name, name.lower())}
    return {**old, **both, "NO_PROXY": local, "no_proxy": local, "NODE_USE_ENV_PROXY": "1"}
