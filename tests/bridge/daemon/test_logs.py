"""Logs that are written to during their rotation (ruling N8)."""

import asyncio
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from activities.runs.regular_files import NotRegularError
from activities.settings.home import Home
from bridge.daemon import logs
from bridge.daemon.logs import log_end, open_log, set_aside
from tests.waiting import until, wait_for
from workflows.model.errors import NotFoundError

pytestmark = pytest.mark.ruling("N8")

LINES, CUTS = 4000, 3
WRITER = f"""
import itertools, os, sys
end = None
for number in itertools.count():
    os.write(1, b"%08d\\n" % number)
    if end is None and number % 100 == 0 and os.path.exists(sys.argv[1]):
        end = number + {LINES}
    if number == end:
        break
"""
"""Writes without a pause; once the file exists, writes a fixed number of further lines."""


def test_a_log_that_grew_is_set_aside_and_is_its_owners_alone(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "x.log"
    with open_log(log) as file:
        for text in (b"first", b"second", b"third"):
            file.write(text)
            file.flush()
            set_aside(log, limit=3)
    assert log.read_bytes() == b""
    assert log.with_name("x.log.1").read_bytes() == b"third"
    assert {path.stat().st_mode & 0o777 for path in log.parent.iterdir()} == {0o600}


def test_a_program_that_writes_all_the_while_goes_on_in_the_new_one(tmp_path: Path) -> None:
    log, enough = tmp_path / "x.log", tmp_path / "enough"
    with open_log(log) as file:
        writer = subprocess.Popen([sys.executable, "-c", WRITER, enough], stdout=file)
    pieces: list[str] = []
    for _ in range(CUTS):
        wait_for(lambda: log.stat().st_size > 0)
        set_aside(log, limit=0)
        pieces.append((tmp_path / "x.log.1").read_text())
    enough.touch()
    assert writer.wait() == 0
    last = [int(line) for line in log.read_text().splitlines()[1:]]  # the rest of a cut line may come first
    lines = [line for piece in pieces for line in piece.splitlines()]
    numbers = [int(line) for line in lines if len(line) == len(f"{LINES:08d}")] + last
    assert numbers == sorted(set(numbers)), "no line twice, none in the wrong place"
    assert len(last) >= LINES - 1, "what is written after a cut is all there"
    assert last == list(range(last[0], last[0] + len(last)))


def test_a_line_that_is_written_while_it_is_copied_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, copied = tmp_path / "x.log", shutil.copyfileobj
    log.write_text("before\nmean")
    rest = iter([b"while", b"\n"])

    def copy(*arguments: Any) -> None:
        copied(*arguments)
        with open_log(log) as file:
            file.write(next(rest, b""))

    monkeypatch.setattr(shutil, "copyfileobj", copy)
    set_aside(log, limit=0)
    assert (tmp_path / "x.log.1").read_text() == "before\nmeanwhile\n"
    assert log.read_text() == ""


def test_a_line_that_never_ends_is_set_aside_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("no end")
    set_aside(tmp_path / "x.log", limit=0)
    assert (tmp_path / "x.log.1").read_text() == "no end"


async def test_the_daemon_looks_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "PAUSE", 0.01)
    monkeypatch.setattr(logs, "KEEP_BYTES", 10)
    monkeypatch.setattr(set_aside, "__defaults__", (10,))
    keeping = asyncio.create_task(logs.keep_small(tmp_path))
    log, copy = tmp_path / "x.log", tmp_path / "x.log.1"
    for text in ("0" * 20, "1" * 20, "2" * 20):
        log.write_text(text)
        await until(partial(set_aside_is, copy, text), "a log that is set aside")
        assert log.read_text() == ""
    keeping.cancel()


def set_aside_is(copy: Path, text: str) -> bool:
    return copy.exists() and copy.read_text() == text


def test_a_link_in_the_place_of_a_log_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "x.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotRegularError):
        open_log(tmp_path / "x.log")
    assert not (tmp_path / "elsewhere").exists()


def test_the_end_of_a_log_that_was_begun_anew_is_read_from_its_begin(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("why it failed")
    assert log_end(tmp_path / "x.log", start=10_000) == "why it failed"


@pytest.fixture
def log(home: Home) -> Path:
    home.logs.mkdir(parents=True, exist_ok=True)
    (home.logs / "worker.log").write_text("".join(f"line {number}\n" for number in range(50)))
    return home.logs / "worker.log"


def test_the_last_lines_of_a_log(home: Home, log: Path) -> None:
    assert logs.last(home, "worker", 2) == ["line 48", "line 49"]
    log.write_text("x" * logs.READ + "\nthe end\n")
    assert logs.last(home, "worker", 5) == ["the end"], "a line whose begin is not read is left out"


def test_what_is_added_is_told_line_by_line_also_after_the_log_was_set_aside(
    home: Home, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adds = iter(["half", " a line\nand\n", "", "anew\n"])

    def pause(_: float) -> None:
        if not (text := next(adds)):
            set_aside(log, limit=0)
        with log.open("a") as file:
            file.write(text)

    monkeypatch.setattr("bridge.daemon.logs.time.sleep", pause)
    lines = logs.follow(home, ["worker"])
    assert [next(lines) for _ in range(3)] == [("worker", "half a line"), ("worker", "and"), ("worker", "anew")]


@pytest.mark.parametrize("name", ["nobody", "../config", ""])
def test_a_log_that_is_not_there_is_answered_with_those_that_are(home: Home, log: Path, name: str) -> None:
    with pytest.raises(NotFoundError, match="there are: worker"):
        logs.last(home, name, 1)
