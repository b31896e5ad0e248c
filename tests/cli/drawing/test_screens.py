"""Drawing on different streams: terminals and their colours, pipes, and plain text by choice."""

import fcntl
import io
import os
import pty
import struct
import termios

import pytest

from cli.drawing.lines import FOLDED, Piece, ScreenLine, Tone
from cli.drawing.screens import Screen, on_one_line, rows_of, screen_of
from tests.evil import EVIL, raw

pytestmark = pytest.mark.ruling("N6")

RED = ScreenLine(Piece("failed", Tone.BAD), ": the check says no", below="  " + FOLDED)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "colours"),
    [
        ({}, True),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "0"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_a_terminal_has_colours_unless_somebody_wants_none(environment: dict[str, str], colours: bool) -> None:
    screen = screen_of(Terminal(), {"TERM": "xterm", **environment})
    assert screen is not None
    assert screen.colours == colours
    assert ("\x1b[31m" in "".join(rows_of(RED, screen))) == colours


@pytest.mark.parametrize(("columns", "lines"), [(40, 20), (80, 24), (200, 50), (0, 0), (5, 3)])
def test_its_size_is_that_of_the_terminal_itself(columns: int, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "123")
    person, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    with open(program, "w") as stream:
        screen = screen_of(stream, {"TERM": "xterm"})
    os.close(person)
    assert screen is not None
    assert (screen.width, screen.height) == (max(columns or 80, 20), lines or 24)


def test_a_dumb_terminal_and_a_pipe_are_plain() -> None:
    assert screen_of(Terminal(), {"TERM": "dumb"}) is None
    assert screen_of(Terminal(), {}) is None
    assert screen_of(Terminal(), {"TERM": "dumb", "FORCE_COLOR": "1"}) is None
    assert screen_of(io.StringIO(), {}) is None
    closed = io.StringIO()
    closed.close()
    assert screen_of(closed, {}) is None


@pytest.mark.parametrize("name", ["FORCE_COLOR", "CLICOLOR_FORCE"])
def test_colours_can_be_asked_for_in_a_pipe_where_nothing_is_folded(name: str) -> None:
    assert screen_of(io.StringIO(), {name: "0"}) is None
    screen = screen_of(io.StringIO(), {name: "1"})
    assert screen == Screen(None)
    assert list(rows_of(ScreenLine(Piece("x" * 500, Tone.GOOD), below=""), screen)) == [f"\x1b[32m{'x' * 500}\x1b[0m"]


def test_a_line_is_its_text() -> None:
    assert RED == "failed: the check says no"
    assert f"{RED}" == "failed: the check says no"


def test_what_does_not_fit_stands_below_behind_a_sign() -> None:
    assert list(rows_of(RED, Screen(20, colours=False))) == ["failed: the check", "  | says no"]
    assert list(rows_of(ScreenLine("service resume job-1 answer"), Screen(20))) == ["service resume job-1 answer"]


def test_a_word_that_fits_on_no_line_is_divided_where_it_stands() -> None:
    line = ScreenLine("store  sqlite:////srv/home/store.db is here", below="  " + FOLDED)
    assert list(rows_of(line, Screen(22, colours=False))) == [
        "store  sqlite:////srv/",
        "  | home/store.db is",
        "  | here",
    ]


def test_nothing_is_set_in_further_than_half_the_width() -> None:
    line = ScreenLine("a word and another one and more", below=" " * 20 + FOLDED)
    assert list(rows_of(line, Screen(24, colours=False))) == ["a word and another one", "  | and more"]


def test_quoted_lines_stay_quoted() -> None:
    quote = "  | " + "x" * 14 + " error: FORGED"
    assert list(rows_of(quote, Screen(20, colours=False))) == ["  | " + "x" * 14, "  | error: FORGED"]


def test_a_line_of_a_view_is_cut() -> None:
    assert on_one_line(RED, Screen(12)) == "\x1b[31mfailed\x1b[0m: the…"
    assert on_one_line(ScreenLine("日本語日本語"), Screen(9)) == "日本語日…"


def test_nothing_of_the_text_is_a_sequence() -> None:
    for screen in (Screen(40, links=True), Screen(None)):
        rows = list(rows_of(ScreenLine(Piece(EVIL, Tone.BAD, EVIL), EVIL, below="| "), screen))
        left = [row.replace("\x1b[31m", "").replace("\x1b[2m", "").replace("\x1b[0m", "") for row in rows]
        assert not raw("\n".join(left))


@pytest.mark.parametrize(
    ("address", "is_link"),
    [
        ("https://github.com/acme/shop/pull/7", True),
        ("http://127.0.0.1:8080/ui/jobs/job-1", True),
        ("https://x/\x1b\\", False),
        ("https://x/\x07", False),
        ("https://x/é", False),
        ("javascript:alert(1)", False),
    ],
)
def test_only_an_address_is_a_link(address: str, is_link: bool) -> None:
    (row,) = rows_of(ScreenLine(Piece("here", Tone.PLAIN, address)), Screen(80, links=True))
    assert row == (f"\x1b]8;;{address}\x1b\\here\x1b]8;;\x1b\\" if is_link else "here")
