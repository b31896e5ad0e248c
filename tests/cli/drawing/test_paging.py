"""Paging: long texts on a terminal are paged; short ones, pipes and lasting output are not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from tests.cli.seat import CTRL_C, seated
from tests.cli.terminal import Printed, typed

pytestmark = pytest.mark.ruling("N6", "K6")


@pytest.fixture
def many(home: Home) -> Iterator[Service]:
    """Seed more jobs than a usual terminal has lines."""
    made = Service(home)
    legs = [seeds.job(f"{ROOT}.{number}", summary="日本語の要約 " * 20) for number in range(1, 31)]
    seeds.write(made, seeds.task(), seeds.job(), *legs)
    yield made
    made.store.dispose()


def on_terminal(home: Home, words: str, pager: str = "sed s/^/PAGED:/", **more: str) -> Printed:
    environment = {**os.environ, "SERVICE_HOME": str(home.root), "TERM": "xterm", "PAGER": pager, **more}
    return typed(words.split(), environment=environment)


@pytest.mark.parametrize("words", ["job list --jobs", f"job tree {ROOT}", "job list --jobs --json"])
def test_a_long_text_goes_through_the_pager(home: Home, many: Service, words: str) -> None:
    printed = on_terminal(home, words)
    assert printed.code == 0
    lines = printed.out.decode().splitlines()
    assert len(lines) > 30
    assert all(line.startswith("PAGED:") for line in lines)


@pytest.mark.parametrize(
    ("words", "pager"), [("job list --jobs --limit 3", "sed s/^/PAGED:/"), ("job list --jobs", "cat")]
)
def test_a_short_one_does_not_nor_does_it_where_no_pager_is_wanted(
    home: Home, many: Service, words: str, pager: str
) -> None:
    printed = on_terminal(home, words, pager)
    assert b"PAGED" not in printed.out
    assert printed.said.splitlines()[0].startswith("JOB ")


def test_a_dumb_terminal_has_no_pager(home: Home, many: Service) -> None:
    printed = on_terminal(home, "job list --jobs", TERM="dumb")
    assert b"PAGED" not in printed.out
    assert b"PREFLIGHT_FAILED:" in printed.out


def test_a_pager_that_is_left_early_is_no_fault(home: Home, many: Service) -> None:
    printed = on_terminal(home, "job list --jobs", "head -n 1")
    assert (printed.code, printed.err) == (0, b"")
    assert printed.out.count(b"\n") == 1


def test_a_pager_that_is_killed_leaves_the_terminal_as_it_was(home: Home, many: Service) -> None:
    with seated(
        ("job", "list", "--jobs"), environment={"PAGER": "sh -c 'stty -echo -icanon </dev/tty; kill -9 $$'"}
    ) as seat:
        assert seat.end() == 0
        assert seat.is_as_before()


def test_ctrl_c_ends_a_pager_that_does_nothing_about_it(home: Home, many: Service) -> None:
    with seated(("job", "list", "--jobs"), environment={"PAGER": "sh -c 'echo paged; exec sleep 1000'"}) as seat:
        seat.until_shown("paged")
        seat.press(CTRL_C)
        assert seat.end() == 0


def test_an_error_is_told_behind_what_was_said(home: Home, many: Service) -> None:
    printed = on_terminal(home, "job show job-ffffffffffff")
    assert (printed.code, printed.out) == (4, b"")
    assert "error: no job job-ffffffffffff" in printed.said


def test_colours_in_a_pipe_are_no_pages(home: Home, many: Service) -> None:
    environment = {**os.environ, "SERVICE_HOME": str(home.root), "FORCE_COLOR": "1", "PAGER": "sed s/^/PAGED:/"}
    command = [sys.executable, "-P", "-m", "cli.main", "job", "list", "--jobs"]
    output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    assert b"PAGED" not in output
    assert output.startswith(b"\x1b[1mJOB\x1b[0m ")


def test_in_a_pipe_it_is_plain_whatever_the_terminal_would_be(home: Home, many: Service, tmp_path: Path) -> None:
    environment = {**os.environ, "SERVICE_HOME": str(home.root), "TERM": "xterm", "PAGER": "sed s/^/PAGED:/"}
    command = [sys.executable, "-P", "-m", "cli.main", "job", "list", "--jobs"]
    output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    assert b"PAGED" not in output
    assert b"\x1b" not in output
    assert output.splitlines()[0].endswith(b"PREFLIGHT_FAILED:")
