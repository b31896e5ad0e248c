"""A hand-over on a real terminal: its width, `isatty`, and Ctrl-C."""

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cli.warm.conftest import AS_TYPED, FRESH, NOT_TAKEN, ONLY_HANDED, Warm
from tests.waiting import wait_for

pytestmark = pytest.mark.ruling("K7")


@dataclass
class Terminal:
    """A pseudo terminal: the person's end and the program's end."""

    person: int
    program: int

    def owns(self) -> None:
        """In the program, at its start: make this the terminal of its session."""
        fcntl.ioctl(self.program, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    person, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 50, 0, 0))
    os.set_blocking(person, False)
    yield Terminal(person, program)
    os.close(person)
    os.close(program)


def printed(shared: Warm, terminal: Terminal, entry: str, *words: str) -> bytes:
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), terminal.program)
    with shared.begun(*words, entry=entry, start_new_session=True, preexec_fn=terminal.owns, **streams) as process:
        process.wait()
    return os.read(terminal.person, 65536)


@pytest.mark.parametrize("words", ["job list --help", "agent ask nobody hi --repo acme/shop"])
@pytest.mark.long
def test_it_is_as_wide_as_the_terminal(shared: Warm, terminal: Terminal, words: str) -> None:
    handed, fresh = (printed(shared, terminal, each, *words.split()) for each in (ONLY_HANDED, FRESH))
    assert handed == fresh
    assert max(map(len, handed.decode().splitlines())) <= 80


@pytest.mark.long
def test_ctrl_c_ends_it(shared: Warm, terminal: Terminal) -> None:
    assert shared.process is not None
    children = f"/proc/{shared.process.pid}/task/{shared.process.pid}/children"
    typed = shared.begun(
        *("result", "check"), entry=AS_TYPED, start_new_session=True, preexec_fn=terminal.owns, stderr=terminal.program
    )

    def runs() -> bool:
        with open(children) as file:
            return any(os.getsid(int(each)) == int(each) for each in file.read().split())

    wait_for(runs)
    os.write(terminal.person, b"\x03")
    assert typed.wait(timeout=300) == 130
    typed.communicate()


@pytest.mark.long
def test_a_question_is_asked_by_a_process_of_its_own(shared: Warm, terminal: Terminal) -> None:
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), terminal.program)
    with shared.begun("resume", "job-1", start_new_session=True, preexec_fn=terminal.owns, **streams) as process:
        assert process.wait() == NOT_TAKEN


@pytest.mark.long
def test_a_long_text_is_paged_by_the_process_that_was_typed(shared: Warm, terminal: Terminal) -> None:
    shared.extra |= {"TERM": "xterm", "PAGER": "sed s/^/PAGED:/"}
    try:
        handed, fresh = (printed(shared, terminal, each, "config", "show") for each in (ONLY_HANDED, FRESH))
    finally:
        for name in ("TERM", "PAGER"):
            del shared.extra[name]
    assert handed == fresh
    assert all(line.startswith(b"PAGED:") for line in handed.splitlines())
    assert handed.count(b"\n") > 20
