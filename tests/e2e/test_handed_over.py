"""Commands of a running service in its warm process: real programs, asked and interrupted."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.warm.conftest import FRESH, ONLY_HANDED
from tests.cli.warm.warming import warmed
from tests.e2e.conftest import Installed

pytestmark = [pytest.mark.long, pytest.mark.ruling("K7")]

SLOW = (
    'while [ ! -e "$PROOF" ]; do sleep 0.1; done; echo \'{"service_result": {"decision": "approved", "summary": "s"}}\''
)
ASK = ("agent", "ask", "slow", "hello", "--repo", "acme/shop")


@pytest.fixture
def typed(installed: Installed) -> Iterator[Installed]:
    installed.agent("slow", SLOW)
    installed("daemon", "start")
    warmed(installed.seen.home.commands_socket)
    yield installed
    Path(installed.environment["PROOF"]).touch()


def begun(typed: Installed, entry: str, *words: str) -> "subprocess.Popen[str]":
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", entry, *words]
    return subprocess.Popen(command, env=typed.environment, cwd=typed.tmp, text=True, **pipes)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("entry", [ONLY_HANDED, FRESH])
def test_ctrl_c_ends_the_waiting_and_not_the_work(typed: Installed, entry: str) -> None:
    process = begun(typed, entry, *ASK, "--wait")
    assert process.stderr is not None
    first = process.stderr.readline() or "".join(process.stderr)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait() == 130, first + rest
    assert "It goes on without you. To come back:" in rest
    assert typed.json("job", "list")[0]["ended_at"] is None


def test_what_is_asked_is_done_and_followed_to_its_end(typed: Installed) -> None:
    process = begun(typed, ONLY_HANDED, *ASK, "--wait", "--json")
    Path(typed.environment["PROOF"]).touch()
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert '"approved"' in out


def test_the_service_stops_under_a_command_that_waits(typed: Installed) -> None:
    process = begun(typed, ONLY_HANDED, *ASK, "--wait")
    assert process.stderr is not None
    assert process.stderr.readline()
    typed("daemon", "stop")
    assert process.poll() is None, "it waits on, as it would in a process of its own"
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
