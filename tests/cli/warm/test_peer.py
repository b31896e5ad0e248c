"""The caller of a hand-over is held as a process, not as a pid (ruling N5)."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.warm import peer as peers
from cli.warm.peer import Peer
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.ruling("N5"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the warm process"),
]

CALLS = """
import os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
sys.stdin.read()
"""


@pytest.mark.parametrize("kernel", ["this one", "one without SO_PEERPIDFD"])
def test_a_process_that_has_ended_is_known_to_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    if kernel != "this one":
        monkeypatch.setattr(peers, "SO_PEERPIDFD", 2**15)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        caller = subprocess.Popen([sys.executable, "-c", CALLS, str(tmp_path / "s")], stdin=subprocess.PIPE)
        line, _ = listener.accept()
        with line:
            peer = Peer.of(line)
            assert peer.pid == caller.pid
            assert peer.lives
            caller.communicate(b"")
            wait_for(lambda: not peer.lives)
            os.close(peer.handle)
