"""The network `model`: named hosts through the proxy, named services of this machine, and nothing else (ruling N2)."""

import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.boxes import allowed_hosts
from activities.boxes.allowed_hosts import HostEntry, Target, is_refused, matching
from activities.boxes.box import Network
from activities.runs.os_processes import children, identity
from activities.runs.supervised_run import Claim
from activities.settings.model import Settings
from tests.activities.boxes.world import UID, World, begun
from tests.waiting import until

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
    """Serve one fixed answer on loopback, after one line of the client."""
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


async def test_a_service_of_this_machine_that_is_named_is_where_it_always_is(world: World) -> None:
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
        box = world.box(Network.MODEL, hosts=(f"127.0.0.1:{port}",) * 2)
        preamble = "import os, json; world = json.loads(os.environ['WORLD'])\n"
        end = await world.play(box, preamble + script)
    assert end.stdout.read_text() == "model\nConnectionRefusedError\n", end.stderr.read_text()


async def test_hosts_that_are_not_named_are_refused_with_a_sentence_and_noted(world: World) -> None:
    script = """
ask("CONNECT evil.example:443 HTTP/1.1")
ask("CONNECT evil.example:443 HTTP/1.1")
ask("GET http://evil.example/x HTTP/1.1")
ask("CONNECT localhost:443 HTTP/1.1")
ask("CONNECT 127.0.0.1:%d HTTP/1.1" % json.loads(os.environ["WORLD"])["port"])
ask("nonsense")
"""
    box = world.box(Network.MODEL, hosts=("api.example", "localhost"))
    end = await world.play(box, "import json\n" + ASK + script)
    reason = "evil.example:443 is blocked by this box: it is not in [runtimes.<name>].hosts"
    refused = f"HTTP/1.1 403 Forbidden {reason}"
    first, second, plain, local, address, nonsense = end.stdout.read_text().splitlines()
    assert first == second == refused, end.stderr.read_text()
    assert plain == refused.replace(":443", ":80")
    leads = "leads to this machine: its services are named in [runtimes.<name>].hosts as 127.0.0.1:port"
    assert local == f"HTTP/1.1 403 Forbidden localhost:443 {leads}"
    assert "403 Forbidden" in address
    assert "400 Bad Request" in nonsense
    log = (end.run_dir / "supervisor.log").read_text()
    assert log.count("network: evil.example:443 is blocked") == 1


async def test_an_allowed_host_is_reached_through_the_machine_s_own_proxy(world: World) -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\nfrom afar") as port:
        box = world.box(Network.MODEL, hosts=("api.example",), upstream=f"http://127.0.0.1:{port}")
        end = await world.play(box, ASK + 'ask("CONNECT api.example:443 HTTP/1.1")')
    assert end.stdout.read_text() == "HTTP/1.1 200 Connection established from afar\n", end.stderr.read_text()


async def test_the_proxy_begins_with_the_first_connection_and_ends_with_the_run(world: World) -> None:
    script = """
import pathlib, time
print("up", flush=True)
def wait(name):
    while not pathlib.Path(name).exists(): time.sleep(0.02)
wait("connect")
for _ in range(2): ask("CONNECT evil.example:443 HTTP/1.1"); sys.stdout.flush()
wait("end")
"""
    request = world.request(world.box(Network.MODEL, hosts=("api.example",)), ASK + script)
    task = await begun(request)
    claim = Claim.read(request.run_dir)
    assert claim is not None
    assert claim.pid is not None
    [command] = children(claim.pid)
    (world.work / "connect").touch()
    await until(lambda: (request.run_dir / "stdout.log").read_text().count("403 Forbidden") == 2)
    [proxy] = children(claim.pid) - {command}
    if world.box().uid is not None:
        assert os.stat(f"/proc/{proxy}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino
        assert {line for line in Path(f"/proc/{proxy}/status").read_text().splitlines() if line.startswith("Uid")} == {
            "\t".join(["Uid:", *[str(UID)] * 4])
        }
        assert len(os.listdir(f"/proc/{proxy}/fd")) <= 5, "its streams, a socket and a semaphore"
        assert os.stat(f"/proc/{proxy}/environ").st_uid == 0, "it is nobody's to look into"
    (world.work / "end").touch()
    end = await task
    assert (end.exit_code, end.survivors) == (0, 0), end.stderr.read_text()
    assert identity(proxy) is None


async def test_nothing_of_the_proxy_is_left(world: World) -> None:
    end = await world.play(world.box(Network.MODEL), "print('up')")
    assert (end.exit_code, end.survivors, end.stdout.read_text()) == (0, 0, "up\n")


@pytest.mark.parametrize(
    ("entries", "target", "through"),
    [
        (("api.example",), "api.example:443", True),
        (("API.example",), "api.EXAMPLE:443", True),
        (("api.example",), "api.example:22", False),
        (("api.example:22",), "api.example:22", True),
        (("api.example:22",), "api.example:443", False),
        (("*.example",), "api.example:443", True),
        (("*.example",), "example:443", False),
        (("*.example",), "badexample:443", False),
        (("api.example",), "xapi.example:443", False),
        (("*",), "anything.at.all:80", True),
        (("*",), "anything.at.all:25", False),
        (("*:25",), "anything.at.all:25", True),
        (("10.0.0.7",), "10.0.0.7:80", True),
        (("[fd00::7]:81",), "[FD00:0::7]:81", True),
        ((), "api.example:443", False),
    ],
)
def test_which_entry_lets_what_through(entries: tuple[str, ...], target: str, through: bool) -> None:
    read = Target.read(target)
    assert read
    assert bool(matching(read, entries)) is through


def test_what_is_written_out_comes_before_patterns() -> None:
    target = Target("llm.corp", 443)
    for entries in (("*", "*.corp", "llm.corp"), ("llm.corp", "*")):
        assert matching(target, entries) == HostEntry("llm.corp")


INTERFACES = """
set -e
ip link set lo up
ip link add name one type veth peer name other
ip link add name off type veth peer name off_too
ip address add 93.184.216.34/24 dev one
ip address add 2606:2800:21f::34/64 dev one nodad
ip address add 198.41.0.4/32 dev off
ip link set one up
ip link set other up
ip route add default via 93.184.216.1
ip route add 192.5.6.0/24 dev one
ip route add local 192.33.4.0/24 dev lo
ip route add 199.7.0.0/16 via 93.184.216.1
ip -6 route add default via 2606:2800:21f::1
"""
ASK_KERNEL = """
import json, sys
sys.path.insert(0, sys.argv[1])
from activities.boxes.allowed_hosts import is_refused
print(json.dumps({each: [is_refused(each, written_out=out) for out in (True, False)] for each in sys.argv[2:]}))
"""
HERE = ("93.184.216.34", "2606:2800:21f::34", "198.41.0.4", "192.33.4.12", "93.184.216.255", "64:ff9b::93.184.216.34")
NEAR = ("93.184.216.1", "2606:2800:21f::1", "192.5.6.30", "64:ff9b::93.184.216.35")
AWAY = ("8.8.8.8", "93.184.217.34", "199.7.83.42", "2606:2800:21e::1", "64:ff9b::8.8.8.8")


def test_addresses_of_every_interface_are_this_machine_s_and_what_is_on_its_links_is_local() -> None:
    """Include public addresses, and those of an interface that is down."""
    alone = ["unshare", "--net", *(() if os.geteuid() == 0 else ("--map-root-user",))]
    if (
        not shutil.which("ip")
        or subprocess.run([*alone, "ip", "link", "add", "name", "one", "type", "veth"], check=False).returncode
    ):
        pytest.skip("no network of its own to be had with interfaces in it")
    asked = shlex.join([sys.executable, "-I", "-S", "-c", ASK_KERNEL, os.getcwd(), *HERE, *NEAR, *AWAY])
    process = subprocess.run([*alone, "sh", "-c", INTERFACES + asked], check=True, capture_output=True, text=True)
    refused = {"here": [True, True], "near": [False, True], "away": [False, False]}
    expected = {
        address: refused[where] for where, all_ in (("here", HERE), ("near", NEAR), ("away", AWAY)) for address in all_
    }
    assert json.loads(process.stdout) == expected


def test_where_the_kernel_tells_no_route_nothing_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowed_hosts, "RTM_GETROUTE", 200)
    with pytest.raises(OSError, match=r"cannot find the route to 8\.8\.8\.8: "):
        is_refused("8.8.8.8", written_out=True)


@pytest.mark.parametrize("text", ["", ":443", "host", "host:x", "host:99999", "host:-1"])
def test_what_names_no_host_and_port_is_none(text: str) -> None:
    assert Target.read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ":443",
            "a b",
            "a\0.example",
            "a..example",
            "a.example.",
            "https://a.example",
            "a.example/",
            "me@a.example",
        ),
        *("b\xfccher.example", "a_b.example", "-a.example", f"{'a' * 64}.example", "a.example:0", "a.example:65536"),
        *("**", "*a.example", "a.*.example", "*.", "*.*", "*.example:x", "*.10.0.0.7", "*.7"),
        *("127.1", "0x7f.1", "2130706433", "0177.0.0.1", "::1", "[::1%lo]", "[10.0.0.7]", "[a.example]"),
    ],
)
def test_an_entry_that_can_never_match_is_an_error_that_says_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a host: write name, name:port, \*\.name, \* or 127\.0\.0\.1:port"):
        HostEntry.read(text)


@pytest.mark.parametrize(
    "text",
    [
        *("a", "A.Example", "xn--bcher-kva.example:8443", "a--b.example", "1a.example", f"{'a' * 63}.example"),
        *("*", "*:8080", "*.example", "*.example:22", "127.0.0.1:8080", "10.0.0.7", "[fd00::7]", "[fd00::7]:81"),
    ],
)
def test_every_form_of_an_entry_is_taken_by_the_settings(text: str) -> None:
    assert Settings.model_validate({"runtimes": {"shell": {"hosts": [text]}}}).runtimes["shell"].hosts == [text]
