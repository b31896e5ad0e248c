"""Choice of ports."""

import socket
from collections.abc import Iterator

import pytest

from bridge.machine.ports import PortTakenError, choose_port, is_free


@pytest.fixture
def taken() -> Iterator[int]:
    """Yield a port on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_wanted_port_is_taken_when_it_is_free(taken: int) -> None:
    free = choose_port(taken, "Temporal").port
    choice = choose_port(free, "Temporal")
    assert choice.port == free
    assert choice.note("Temporal") == ""


def test_a_taken_port_gives_way_to_the_next_free_one_and_says_so(taken: int) -> None:
    choice = choose_port(taken, "Temporal")
    assert taken < choice.port < taken + 200
    assert is_free(choice.port)
    assert choice.note("Temporal") == f"port {taken} is taken; Temporal listens on {choice.port}"


def test_a_fixed_port_that_is_taken_is_refused_with_the_way_to_find_who_has_it(taken: int) -> None:
    with pytest.raises(PortTakenError, match=f"port {taken}, fixed for the web UI, is taken") as refused:
        choose_port(taken, "the web UI", strict=True)
    assert f"sport = :{taken}" in refused.value.hint


def test_two_choices_of_one_start_never_collide(taken: int) -> None:
    first = choose_port(taken, "Temporal").port
    assert choose_port(taken, "the web UI", avoid={first}).port not in {first, taken}
    with pytest.raises(PortTakenError):
        choose_port(first, "the web UI", strict=True, avoid={first})


def test_zero_asks_for_any_port_without_a_remark() -> None:
    choice = choose_port(0, "Temporal")
    assert is_free(choice.port)
    assert choice.note("Temporal") == ""


def test_a_port_just_closed_is_free_although_its_connections_linger() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    client = socket.create_connection(("127.0.0.1", port))
    accepted, _ = server.accept()
    accepted.close()
    client.close()
    server.close()
    assert is_free(port)
