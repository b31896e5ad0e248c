"""The end of the logs, and added lines."""

from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.daemon import log_tail
from bridge.daemon.log_files import set_aside
from workflows.model.errors import NotFoundError


@pytest.fixture
def log(home: Home) -> Path:
    home.logs.mkdir(parents=True, exist_ok=True)
    (home.logs / "worker.log").write_text("".join(f"line {number}\n" for number in range(50)))
    return home.logs / "worker.log"


def test_the_last_lines_of_a_log(home: Home, log: Path) -> None:
    assert log_tail.last(home, "worker", 2) == ["line 48", "line 49"]
    log.write_text("x" * log_tail.READ + "\nthe end\n")
    assert log_tail.last(home, "worker", 5) == ["the end"], "a line whose begin is not read is left out"


def test_what_is_added_is_told_line_by_line_also_after_the_log_was_set_aside(
    home: Home, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adds = iter(["half", " a line\nand\n", "", "anew\n"])

    def pause(_: float) -> None:
        if not (text := next(adds)):
            set_aside(log, limit=0)
        with log.open("a") as file:
            file.write(text)

    monkeypatch.setattr("bridge.daemon.log_tail.time.sleep", pause)
    told = log_tail.follow(home, ["worker"])
    assert [next(told) for _ in range(3)] == [("worker", "half a line"), ("worker", "and"), ("worker", "anew")]


@pytest.mark.parametrize("name", ["nobody", "../config", ""])
def test_a_log_that_is_not_there_is_answered_with_those_that_are(home: Home, log: Path, name: str) -> None:
    with pytest.raises(NotFoundError, match="there are: worker"):
        log_tail.last(home, name, 1)
