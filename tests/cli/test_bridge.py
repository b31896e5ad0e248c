"""`service bridge`: the token's path and never the token, and its allowed addresses."""

import pytest

from activities.settings.home import Home
from cli.main import main


@pytest.mark.ruling("J10")
def test_token_prints_the_path_and_rotate_replaces_what_is_there(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets = set()
    for words in (["bridge", "token"], ["bridge", "token"], ["bridge", "token", "--rotate"]):
        assert main(words) == 0
        assert capsys.readouterr().out == f"{home.bridge_token}\n"
        secrets.add(home.bridge_token.read_text())
    assert len(secrets) == 2


@pytest.mark.ruling("spec:bridge.loopback")
@pytest.mark.parametrize(
    ("addr", "code", "sentence"),
    [
        ("0.0.0.0", 3, "0.0.0.0:8791 can be reached from other machines"),
        ("[::]:80", 3, "[::]:80 can be reached from other machines"),
        ("nonsense:port", 2, "'nonsense:port' is not an address"),
    ],
)
def test_serve_refuses_what_it_should_in_a_sentence(
    home: Home, capsys: pytest.CaptureFixture[str], addr: str, code: int, sentence: str
) -> None:
    assert main(["bridge", "serve", "--addr", addr]) == code
    assert sentence in capsys.readouterr().err


def test_serve_names_a_port_that_is_taken(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["bridge", "serve", "--addr", f":{port}"]) == 1
    assert f"port {port}, fixed for the bridge, is taken by another program" in capsys.readouterr().err
