"""The judgement whether a process is frozen."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from activities.runs import os_processes
from activities.runs.signs_of_life import ENOUGH_SECONDS, LOOKS, SignsOfLife
from tests.waiting import wait_for


def judged(monkeypatch: pytest.MonkeyPatch, looks: int, seconds: float, *, waits: bool, signs: object = None) -> bool:
    """Look at a process that uses so much processor time between two looks, and return the last judgement."""
    seen = SignsOfLife(1)
    frozen = False
    for number in range(looks + 1):
        monkeypatch.setattr(os_processes, "effort", lambda _, now=number * seconds: (now, waits))
        frozen = seen.are_missing(number if signs else None)
    return frozen


@pytest.mark.parametrize(
    ("looks", "seconds", "waits", "frozen"),
    [
        (LOOKS - 1, 0.0, False, False),
        (LOOKS, 0.0, False, True),
        (LOOKS, 0.3, True, False),
        (3 * LOOKS, 0.3, True, False),
        (LOOKS, 0.3, False, True),
        (LOOKS, ENOUGH_SECONDS, True, True),
        (int(ENOUGH_SECONDS / 0.3) + 1 + LOOKS, 0.3, True, True),
    ],
    ids=["not yet", "stopped", "starved", "starved for long", "idle besides", "spinning", "starved and spinning"],
)
def test_a_process_without_signs_is_frozen_unless_it_lacks_processor_time(
    monkeypatch: pytest.MonkeyPatch, looks: int, seconds: float, waits: bool, frozen: bool
) -> None:
    assert judged(monkeypatch, looks, seconds, waits=waits) is frozen
    assert not judged(monkeypatch, looks, seconds, waits=waits, signs=True)


@pytest.fixture
def spinning() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process
        process.kill()


def test_the_effort_of_a_process_is_its_processor_time_and_whether_it_wants_more(
    spinning: subprocess.Popen[bytes],
) -> None:
    wait_for(lambda: (os_processes.effort(spinning.pid) or (0.0, False))[0] > 0.2)
    assert (os_processes.effort(spinning.pid) or (0.0, False))[1]
    os.kill(spinning.pid, signal.SIGSTOP)
    wait_for(lambda: os_processes.effort(spinning.pid) == os_processes.effort(spinning.pid) != (0.0, True))
    wait_for(lambda: not (os_processes.effort(spinning.pid) or (0.0, True))[1])
    spinning.kill()
    spinning.wait()
    assert os_processes.effort(spinning.pid) is None
