"""The network `model`: named hosts through our proxy, named services of this machine, and nothing else (ruling N2)."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from activities.boxes.box import BoxKind, Network
from activities.boxes.hosts import Target, counts, matching
from tests.activities.boxes.world import World

pytestmark = pytest.mark.ruling("N2")

ASK = """
import os, socket, sys
host, port = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
def ask(head):
    with socket.create_connection((host, int(port)), 10) as proxy:
        proxy.sendall(head.encode() + b"\\r\\n\\r\\n")
        answer = b""
        while piece := proxy.recv(1000):
            answer += piece
        print(answer.decode().split("\\r\\n")[0], answer.decode().strip().split("\\n")[-1])
"""


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A service on loopback that says the same to everyone, after one line of theirs."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    one, _ = listening.accept()
                    with one:
                        one.recv(1000)
                        one.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


async def test_a_service_of_this_machine_that_is_named_is_where_it_always_is(world: World, kind: BoxKind) -> None:
    script = """
import socket
for port in (world["named"], world["port"]):
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as one:
            one.sendall(b"hello"); print(one.recv(10).decode())
    except OSError as error: print(type(error).__name__)
"""
    with answering(b"model") as port:
        world.facts["named"] = port
        box = world.box(kind, Network.MODEL, hosts=(f"127.0.0.1:{port}",) * 2)
        preamble = "import os, json; world = json.loads(os.environ['WORLD'])\n"
        end = await world.play(box, preamble + script)
    assert end.stdout.read_text() == "model\nConnectionRefusedError\n", end.stderr.read_text()


async def test_hosts_that_are_not_named_are_refused_with_a_sentence_and_noted(world: World, kind: BoxKind) -> None:
    script = """
ask("CONNECT evil.example:443 HTTP/1.1")
ask("CONNECT evil.example:443 HTTP/1.1")
ask("GET http://evil.example/x HTTP/1.1")
ask("CONNECT localhost:443 HTTP/1.1")
ask("CONNECT 127.0.0.1:%d HTTP/1.1" % json.loads(os.environ["WORLD"])["port"])
ask("nonsense")
"""
    box = world.box(kind, Network.MODEL, hosts=("api.example", "localhost"))
    end = await world.play(box, "import json\n" + ASK + script)
    told = "evil.example:443 is not let through by this box: [runtimes.<name>].hosts has no such host"
    refused = f"HTTP/1.1 403 Forbidden {told}"
    first, second, plain, local, address, nonsense = end.stdout.read_text().splitlines()
    assert first == second == refused, end.stderr.read_text()
    assert plain == refused.replace(":443", ":80")
    assert local == "HTTP/1.1 403 Forbidden localhost:443 leads into this machine or its local network"
    assert "403 Forbidden" in address
    assert "400 Bad Request" in nonsense
    log = (end.run_dir / "supervisor.log").read_text()
    assert log.count("network: evil.example:443 is not let through") == 1


async def test_what_is_let_through_reaches_its_host_by_the_machine_s_own_proxy(world: World, kind: BoxKind) -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\nfrom afar") as port:
        box = world.box(kind, Network.MODEL, hosts=("api.example",), upstream=f"http://127.0.0.1:{port}")
        end = await world.play(box, ASK + 'ask("CONNECT api.example:443 HTTP/1.1")')
    assert end.stdout.read_text() == "HTTP/1.1 200 Connection established from afar\n", end.stderr.read_text()


async def test_nothing_of_the_proxy_is_left(world: World, kind: BoxKind) -> None:
    end = await world.play(world.box(kind, Network.MODEL), "print('up')")
    assert (end.exit_code, end.survivors, end.stdout.read_text()) == (0, 0, "up\n")


@pytest.mark.parametrize(
    ("entries", "target", "through"),
    [
        (("api.example",), "api.example:443", True),
        (("api.example",), "API.example.:443", True),
        (("api.example",), "api.example:22", False),
        (("api.example:22",), "api.example:22", True),
        (("api.example:22",), "api.example:443", False),
        (("*.example",), "api.example:443", True),
        (("*.example",), "example:443", False),
        (("*.example",), "badexample:443", False),
        (("api.example",), "xapi.example:443", False),
        (("*",), "anything.at.all:80", True),
        (("*",), "anything.at.all:25", False),
        ((), "api.example:443", False),
    ],
)
def test_which_entry_lets_what_through(entries: tuple[str, ...], target: str, through: bool) -> None:
    read = Target.read(target)
    assert read
    assert bool(matching(read, entries)) is through


@pytest.mark.parametrize(
    ("address", "entry", "good"),
    [
        ("93.184.216.34", "*", True),
        ("10.0.0.1", "*", False),
        ("10.0.0.1", "*.corp", False),
        ("10.0.0.1", "llm.corp", True),
        ("127.0.0.1", "llm.corp", False),
        ("::ffff:127.0.0.1", "llm.corp", False),
        ("169.254.169.254", "llm.corp", False),
        ("fe80::1%eth0", "llm.corp", False),
        ("0.0.0.0", "*", False),
    ],
)
def test_an_address_counts_only_where_it_may_lead(address: str, entry: str, good: bool) -> None:
    assert counts(address, entry) is good


@pytest.mark.parametrize("text", ["", ":443", "host", "host:x", "host:99999", "host:-1"])
def test_what_names_no_host_and_port_is_none(text: str) -> None:
    assert Target.read(text) is None
