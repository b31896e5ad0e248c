"""The bridge's allowed listening addresses (spec: Authentication 4)."""

import socket

import pytest

from activities.settings.model import BridgeSection
from bridge.machine.address import Address, address_of, bind, choose_address
from bridge.machine.ports import PortTakenError
from workflows.model.errors import RefusedError, UsageError

DEFAULT = BridgeSection()


@pytest.mark.ruling("spec:bridge.loopback")
@pytest.mark.parametrize(
    ("addr", "host", "port"),
    [
        (None, "127.0.0.1", 8791),
        ("", "127.0.0.1", 8791),
        (":9000", "127.0.0.1", 9000),
        ("localhost", "localhost", 8791),
        ("127.0.0.2:1", "127.0.0.2", 1),
        ("::1", "::1", 8791),
        ("[::1]:0", "::1", 0),
    ],
)
def test_loopback_needs_no_permission(addr: str | None, host: str, port: int) -> None:
    assert choose_address(DEFAULT, addr, allow_remote=False) == Address(host, port)


@pytest.mark.ruling("spec:bridge.loopback")
@pytest.mark.parametrize(
    "addr", ["0.0.0.0", "0.0.0.0:8791", "192.168.1.5", "::", "[::]:8791", "bridge.lan:80", "10.0.0.1"]
)
def test_what_others_can_reach_must_be_allowed(addr: str) -> None:
    with pytest.raises(RefusedError, match="can be reached from other machines"):
        choose_address(DEFAULT, addr, allow_remote=False)
    assert choose_address(DEFAULT, addr, allow_remote=True)
    assert choose_address(BridgeSection(allow_remote=True), addr, allow_remote=False)


@pytest.mark.parametrize("addr", ["a b", "1:2:3:4", "host:port", "host:70000", "http://127.0.0.1", "[::1"])
def test_what_is_no_address_is_said_to_be_none(addr: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        choose_address(DEFAULT, addr, allow_remote=True)


def test_a_port_that_is_taken_and_an_address_that_is_not_ours() -> None:
    with bind(Address("127.0.0.1", 0)) as first, pytest.raises(PortTakenError) as taken:
        bind(address_of(first))
    assert taken.value.message.endswith("fixed for the bridge, is taken by another program")
    with pytest.raises(UsageError, match="cannot listen on 192\\.0\\.2\\.1:0"):
        bind(Address("192.0.2.1", 0))


def test_no_answer_waits_for_an_acknowledgement() -> None:
    with bind(Address("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()):
        taken, _ = listening.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
