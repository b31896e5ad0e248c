"""Slow callers: they delay nobody else, and are cut off by timeouts."""

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest

from bridge.http import connections
from bridge.operations.service import Service
from tests.bridge.conftest import Live, bearer

pytestmark = pytest.mark.long

MANY = 100


def connected(live: Live) -> socket.socket:
    return socket.create_connection((live.address.host, live.address.port), timeout=20)


def is_cut_off(line: socket.socket) -> bool:
    try:
        return line.recv(1) == b""
    except ConnectionResetError:
        return True


def answered(line: socket.socket) -> bool:
    received = b""
    while not received.endswith(b"}"):
        received += line.recv(4096)
    return received.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("stage", ["nothing", "head", "body", "second head"])
def test_who_sends_a_byte_now_and_then_blocks_nobody_and_is_cut_off(
    service: Service, listening: Callable[[Service], Live], stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.5)
    monkeypatch.setattr(connections, "BODY_SECONDS", 1.5)
    live, authorization = listening(service), bearer(service)["Authorization"]
    call = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n"
    begun = {
        "nothing": b"",
        "head": call.encode(),
        "body": call.encode() + b"Content-Length: 1000\r\n\r\n{",
        "second head": f"{call}\r\n".encode(),
    }[stage]
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(live)) for _ in range(MANY)]
        for line in slow:
            line.sendall(begun)
        for line in slow if stage == "second head" else ():
            assert answered(line)
            line.sendall(call.encode())
        with httpx.Client(base_url=live.url, headers=bearer(service)) as client:
            for line in slow[:10]:
                line.sendall(b"x" if begun else b"")
                assert client.get("/v1/jobs").status_code == 200
        assert all(is_cut_off(line) for line in slow)


def test_a_connection_that_is_kept_open_is_not_cut_off_between_calls(
    service: Service, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    live = listening(service)
    with connected(live) as line:
        for _ in range(3):
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert answered(line)
            time.sleep(0.4)
