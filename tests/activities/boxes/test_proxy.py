"""Attacks on the proxy of the network `model`: which hosts it accepts, and where it connects to (ruling N2)."""

import contextlib
import os
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from activities.boxes import allowed_hosts, proxy
from activities.boxes.box import Box, Network

pytestmark = pytest.mark.ruling("N2")

PUBLIC, PUBLIC_6, PRIVATE = "93.184.216.34", "2606:2800:21f:cb07::1", "10.0.0.7"
HERE = Path("/nowhere")


@dataclass
class Bench:
    """A proxy in this process, with simulated names and connections."""

    names: dict[str, list[list[str]]] = field(default_factory=dict)
    """The addresses of each name: at the first look-up, the second, …; the last answer stays."""
    looked_up: list[str] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)
    """The bytes sent to hosts, and to the machine's own proxy."""
    noted: list[str] = field(default_factory=list)

    def getaddrinfo(self, host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        with contextlib.suppress(OSError):
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            socket.inet_pton(family, host)
            return [(family, socket.SOCK_STREAM, 6, "", (host, port))]
        self.looked_up.append(host)
        answers = self.names.get(host, [])
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    def create_connection(self, address: tuple[str, int], _: object = None) -> socket.socket:
        self.dialled.append(address)
        ours, theirs = socket.socketpair()
        threading.Thread(target=self._be_host, args=(theirs,), daemon=True).start()
        return ours

    def _be_host(self, here: socket.socket) -> None:
        with contextlib.suppress(OSError), here:
            while piece := here.recv(10_000):
                self.received.append(piece)
                here.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    def ask(self, hosts: tuple[str, ...], request: bytes, *more: bytes, upstream: str = "") -> bytes:
        """Send a request, each part after the answer to the one before. Return all answers."""
        box = Box(Network.MODEL, HERE, HERE, hosts=hosts, upstream=upstream)
        with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as program:
            serving = proxy.Proxy(box, self.noted.append)
            thread = threading.Thread(target=self._serve, args=(serving, listening), daemon=True)
            thread.start()
            program.settimeout(30)
            program.connect(listening.getsockname())
            answer = b""
            for part in (request, *more):
                with contextlib.suppress(OSError):  # it was refused already
                    program.sendall(part)
                    answer += program.recv(10_000)
            with contextlib.suppress(OSError):
                program.shutdown(socket.SHUT_WR)
                while piece := program.recv(10_000):
                    answer += piece
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(30)
        for _ in range(proxy.CONNECTIONS - 1):  # the last one was to be the next
            os.eventfd_read(serving._room)
        os.close(serving._room)
        return answer

    def _serve(self, serving: proxy.Proxy, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the end of the test
            serving.serve([listening])

    def lets_through(self, hosts: tuple[str, ...], target: str, upstream: str = "") -> bool:
        """Return whether the proxy connects to this target."""
        answer = self.ask(hosts, f"CONNECT {target} HTTP/1.1\r\n\r\n".encode("latin-1"), upstream=upstream)
        let_through = answer.startswith(b"HTTP/1.1 200")
        assert let_through or not self.received, "and a host that is refused is sent nothing"
        return let_through


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    monkeypatch.setattr(socket, "create_connection", made.create_connection)
    monkeypatch.setattr(allowed_hosts, "next_hop", lambda _: allowed_hosts.Hop.ROUTER)  # `test_network` asks the kernel
    return made


class EveryName(dict[str, list[list[str]]]):
    """A resolver that knows any name, like an attacker's."""

    def get(self, name: str, default: object = None) -> list[list[str]]:
        return [[PUBLIC]]


NOT_A_HOST = (
    *(
        "evil.example\0.chatgpt.com:443",
        "evil.example\0:443",
        "evil.example%00.chatgpt.com:443",
        "a\tb.chatgpt.com:443",
    ),
    *("evil.example/.chatgpt.com:443", "evil.example#.chatgpt.com:443", "evil.example?.chatgpt.com:443"),
    *("evil.example\\.chatgpt.com:443", "evil.example:443@a.chatgpt.com:443", "a.chatgpt.com:443@evil.example"),
    *("a.chatgpt.com:443:443", "a..chatgpt.com:443", ".chatgpt.com:443", "a.chatgpt.com.:443", "*.chatgpt.com:443"),
    *("-a.chatgpt.com:443", "a-.chatgpt.com:443", "a_b.chatgpt.com:443", "b\xfccher.chatgpt.com:443", "*:443", ":443"),
    *(f"{'a' * 64}.chatgpt.com:443", f"{'a.' * 122}chatgpt.com:443"),
    *("a.chatgpt.com", "a.chatgpt.com:", "a.chatgpt.com:0", "a.chatgpt.com:65536", "a.chatgpt.com:0443"),
    *("a.chatgpt.com:+443", "a.chatgpt.com:4_43", "a.chatgpt.com:-443", "a.chatgpt.com:0x1bb", "a.chatgpt.com:\xb2"),
    *("127.1:443", "0x7f.1:443", "0177.0.0.1:443", "2130706433:443", "0x7f000001:443", "127.0.0.0x1:443", "0x:443"),
    *("127.0.0.01:443", "1.2.3:443", "1.2.3.4.5:443", "a.1:443", "256.1.1.1:443"),
    *("::1:443", "[::1:443", "::1]:443", "[fe80::1%25eth0]:443", "[fe80::1%eth0]:443", "[1.2.3.4]:443", "[a.b]:443"),
    *("[[::1]]:443", "[]:443", "[::1]443", "[::1].chatgpt.com:443"),
)


@pytest.mark.parametrize("target", NOT_A_HOST)
def test_an_invalid_host_or_port_is_never_looked_up(bench: Bench, target: str) -> None:
    bench.names = EveryName()
    for upstream in ("", "http://127.0.0.1:3128"):
        assert not bench.lets_through(("*.chatgpt.com", "*"), target, upstream)
    assert (bench.looked_up, bench.dialled) == ([], [])
    assert all(said.isprintable() for said in bench.noted)


HEADS = {
    "no request": b"nonsense\r\n\r\n",
    "two spaces": b"CONNECT  a.example:443 HTTP/1.1\r\n\r\n",
    "tab": b"CONNECT\ta.example:443 HTTP/1.1\r\n\r\n",
    "NUL in the line": b"CONNECT a.example:443\0 HTTP/1.1\r\n\r\n",
    "CR in the line": b"CONNECT a.example:443\r HTTP/1.1\r\n\r\n",
    "LF in the line": b"CONNECT a.example:443\nX: HTTP/1.1\r\n\r\n",
    "lines that end in LF": b"CONNECT a.example:443 HTTP/1.1\nHost: b.example\n\r\n\r\n",
    "HTTP/2": b"CONNECT a.example:443 HTTP/2\r\n\r\n",
    "something behind": b"CONNECT a.example:443 HTTP/1.1 x\r\n\r\n",
    "a path only": b"GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "https": b"GET https://a.example/ HTTP/1.1\r\n\r\n",
    "user information": b"GET http://a.example@evil.example/ HTTP/1.1\r\n\r\n",
    "user information before": b"GET http://evil.example@a.example/ HTTP/1.1\r\n\r\n",
    "a fragment": b"GET http://a.example#@evil.example/ HTTP/1.1\r\n\r\n",
    "a backslash": b"GET http://a.example\\@evil.example/ HTTP/1.1\r\n\r\n",
    "not ASCII": b"GET http://a.example/\xff HTTP/1.1\r\n\r\n",
    "a folded header": b"GET http://a.example/ HTTP/1.1\r\nX: a\r\n Host: evil.example\r\n\r\n",
    "a header without a colon": b"GET http://a.example/ HTTP/1.1\r\nX\r\n\r\n",
    "a space before the colon": b"GET http://a.example/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
    "CR in a header": b"GET http://a.example/ HTTP/1.1\r\nX: a\rHost: evil.example\r\n\r\n",
    "LF in a header": b"GET http://a.example/ HTTP/1.1\r\nX: a\nHost: evil.example\r\n\r\n",
    "NUL in a header": b"GET http://a.example/ HTTP/1.1\r\nX: a\0\r\n\r\n",
    "two hosts": b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nhost: evil.example\r\n\r\n",
    "two lengths": b"GET http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\n",
    "framed twice": b"POST http://a.example/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_request_that_can_be_read_in_two_ways_is_refused_with_a_sentence(bench: Bench, head: bytes) -> None:
    bench.names = EveryName()
    assert bench.ask(("*",), head).startswith(b"HTTP/1.1 400 Bad Request")
    assert (bench.looked_up, bench.dialled) == ([], [])
    assert all(said.isprintable() for said in bench.noted)


def test_a_request_that_never_ends_is_given_up(bench: Bench) -> None:
    bench.names = EveryName()
    head = b"CONNECT a.example:443 HTTP/1.1\r\nX: "
    assert bench.ask(("*",), head + b"x" * 1_000_000) == b""
    assert (bench.looked_up, bench.dialled) == ([], [])


@pytest.mark.parametrize("target", ["API.Example:443", "api.example:443"])
def test_a_name_is_the_same_in_any_case(bench: Bench, target: str) -> None:
    bench.names["api.example"] = [[PUBLIC]]
    assert bench.lets_through(("aPi.eXample",), target)
    assert (bench.looked_up, bench.dialled) == (["api.example"], [(PUBLIC, 443)])


def test_the_address_that_was_checked_is_the_one_connected_to(bench: Bench) -> None:
    """The next look-up may return another address."""
    bench.names["rebinding.example"] = [[PUBLIC], ["127.0.0.1"]]
    assert bench.lets_through(("*",), "rebinding.example:443")
    assert (bench.looked_up, bench.dialled) == (["rebinding.example"], [(PUBLIC, 443)])
    bench.received.clear()
    assert not bench.lets_through(("*",), "rebinding.example:443")
    assert bench.dialled == [(PUBLIC, 443)]


def test_of_several_addresses_those_inside_are_left_out(bench: Bench) -> None:
    bench.names["both.example"] = [["127.0.0.1", PRIVATE, PUBLIC]]
    assert bench.lets_through(("*",), "both.example:443")
    assert bench.dialled == [(PUBLIC, 443)]


INSIDE = (
    *("0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.8.9.10", "169.254.1.1"),
    *("172.16.0.1", "172.31.255.254", "192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1"),
    *("203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.88.99.1"),
    *("::", "::1", "::127.0.0.1", f"::{PUBLIC}", "::ffff:127.0.0.1", f"::ffff:{PUBLIC}", f"::ffff:0:{PUBLIC}"),
    *("64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1", "2002:7f00:1::1"),
    *("2002:5db8:d822::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:db8::1"),
    *("3fff::1", "100::1", "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1", "4000::1", "5f00::1"),
)
CLOUDS = ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "169.254.170.2")


@pytest.mark.parametrize("address", [*INSIDE, *CLOUDS])
def test_a_pattern_allows_no_address_of_this_machine_its_networks_or_its_cloud(bench: Bench, address: str) -> None:
    bench.names["evil.example"] = [[address]]
    literal = f"[{address}]:443" if ":" in address else f"{address}:443"
    for target in ("evil.example:443", literal):
        for upstream in ("", "http://127.0.0.1:3128"):
            assert not bench.lets_through(("*", "*.example"), target, upstream)
    assert bench.dialled == []


@pytest.mark.parametrize(
    "address", [PUBLIC, PUBLIC_6, f"64:ff9b::{PUBLIC}", "192.0.1.1", "100.63.255.255", "172.32.0.1"]
)
def test_any_host_is_every_host_that_is_public(bench: Bench, address: str) -> None:
    bench.names["good.example"] = [[address]]
    assert bench.lets_through(("*",), "good.example:443")
    assert bench.dialled == [(address, 443)]


@pytest.mark.parametrize("name", ["localhost", "x.localhost", "metadata.google.internal", "nas.local", "db.internal"])
def test_any_host_is_no_name_of_the_machine_or_its_cloud_wherever_that_leads(bench: Bench, name: str) -> None:
    bench.names = EveryName()
    assert not bench.lets_through(("*",), f"{name}:80")
    assert (bench.looked_up, bench.dialled) == ([], [])


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "0.0.0.0", "fe80::1", "::ffff:127.0.0.1", "224.0.0.1", *CLOUDS]
)
def test_a_name_that_is_written_out_never_leads_to_this_machine(bench: Bench, address: str) -> None:
    bench.names["llm.corp"] = [[address]]
    for upstream in ("", "http://127.0.0.1:3128"):
        assert not bench.lets_through(("llm.corp",), "llm.corp:443", upstream)
    assert bench.dialled == []
    assert "llm.corp:443 leads to this machine" in bench.noted[0]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_named_port_of_this_machine_is_reached_by_programs_that_send_all_they_ask_to_the_proxy(
    bench: Bench, name: str
) -> None:
    """Their box has that port anyway."""
    for upstream in ("", "http://10.0.0.9:3128"):
        assert bench.lets_through(("127.0.0.1:8080",), f"{name}:8080", upstream)
        assert not bench.lets_through(("127.0.0.1:8080",), f"{name}:443", upstream)
    assert bench.dialled == [("127.0.0.1", 8080)] * 2


@pytest.mark.parametrize("address", [PRIVATE, "192.168.1.1", "100.64.0.1", "fd12:3456::1", "64:ff9b::10.0.0.1"])
def test_a_name_that_is_written_out_may_lead_into_a_local_network(bench: Bench, address: str) -> None:
    """A matching pattern does not change that."""
    bench.names["llm.corp"] = [[address]]
    assert bench.lets_through(("*", "*.corp", "llm.corp"), "llm.corp:443")
    assert bench.dialled == [(address, 443)]


def test_the_machine_s_own_proxy_is_asked_for_the_address_that_was_checked_where_a_pattern_lets_it_through(
    bench: Bench,
) -> None:
    """The machine's proxy resolves names itself: a name that leads elsewhere by then would lead into its network."""
    bench.names["rebinding.example"] = [[PUBLIC], [PRIVATE]]
    assert bench.lets_through(("*",), "rebinding.example:443", "http://127.0.0.1:3128/")
    assert bench.dialled == [("127.0.0.1", 3128)]
    assert bench.received[0] == f"CONNECT {PUBLIC}:443 HTTP/1.1\r\nHost: {PUBLIC}:443\r\n\r\n".encode()


def test_the_machine_s_own_proxy_is_asked_by_name_where_that_is_written_out(bench: Bench) -> None:
    bench.names["known.example"] = [[PRIVATE]]
    for name in ("known.example", "unknown.example"):
        assert bench.lets_through((name,), f"{name}:443", "http://127.0.0.1:3128")
        assert bench.received.pop() == f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n".encode()


@pytest.mark.parametrize("entry", ["*", "*.example"])
def test_a_pattern_refuses_an_unknown_name_and_the_error_says_what_to_set(bench: Bench, entry: str) -> None:
    assert not bench.lets_through((entry,), "unknown.example:443", "http://127.0.0.1:3128")
    assert bench.dialled == []
    assert "unknown.example:443 cannot be reached: " in bench.noted[0]
    assert "name it in [runtimes.<name>].hosts to leave that to the machine's own proxy" in bench.noted[0]


@pytest.mark.parametrize("upstream", ["socks5://127.0.0.1:1080", "http://me:secret@127.0.0.1:3128", "https://p:1"])
def test_a_proxy_of_the_machine_that_cannot_be_spoken_to_is_told_without_its_password(
    bench: Bench, upstream: str
) -> None:
    bench.names["a.example"] = [[PUBLIC]]
    assert not bench.lets_through(("a.example",), "a.example:443", upstream)
    assert bench.dialled == []
    assert "secret" not in bench.noted[0]
    assert "has no address of the form http://host:port" in bench.noted[0]


def test_a_plain_request_is_for_the_host_it_was_let_through_for(bench: Bench) -> None:
    bench.names["a.example"] = [[PUBLIC]]
    head = b"Host: evil.example\r\nConnection: keep-alive\r\nProxy-Authorization: secret\r\nAccept: */*\r\n\r\nbody"
    bench.ask(("a.example", "a.example:81"), b"POST http://A.example/x?y HTTP/1.1\r\n" + head)
    sent = b"Host: a.example\r\nConnection: close\r\nAccept: */*\r\n\r\nbody"
    assert b"".join(bench.received) == b"POST /x?y HTTP/1.1\r\n" + sent
    bench.received.clear()
    bench.ask(("a.example", "a.example:81"), b"GET http://a.example:81?y HTTP/1.0\r\n\r\n")
    assert b"".join(bench.received) == b"GET /?y HTTP/1.0\r\nHost: a.example:81\r\nConnection: close\r\n\r\n"


def test_a_second_request_on_a_connection_goes_to_no_other_host(bench: Bench) -> None:
    """The connection belongs to the first host by then, which is asked to answer one request only."""
    bench.names = EveryName()
    first = b"GET http://a.example/ HTTP/1.1\r\n\r\n"
    bench.ask(("a.example",), first, b"GET http://b.example/ HTTP/1.1\r\n\r\n")
    bench.ask(("a.example",), b"CONNECT a.example:443 HTTP/1.1\r\n\r\n", b"CONNECT b.example:443 HTTP/1.1\r\n\r\n")
    assert set(bench.looked_up) == {"a.example"}
    assert set(bench.dialled) == {(PUBLIC, 80), (PUBLIC, 443)}
    assert b"Connection: close\r\n" in bench.received[0]
