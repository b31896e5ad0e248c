"""A program starts in a session of its own, with its streams and nothing else of its starter, or says why not."""

import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.boxes.start import Streams, start
from activities.runs.os_processes import children
from tests.activities.runs.processes import ORDINARY

pytestmark = [
    pytest.mark.ruling("N2", "engine:runs"),
    pytest.mark.skipif(sys.platform != "linux", reason="what a process has is read in /proc"),
]

ENV = {"PATH": "/usr/bin:/bin", "ONE": "1"}


Enter = Callable[[Streams], None] | None


def nothing(streams: Streams) -> None:
    """Enter nothing: for a program that is forked, but in no box."""


@pytest.fixture(params=[None, nothing])
def enter(request: pytest.FixtureRequest) -> Enter:
    """Return both ways of starting, which behave alike."""
    way: Enter = request.param
    return way


def said(folder: Path, *argv: str, enter: Enter = None, **changes: dict[str, str]) -> list[str]:
    """Return the output of a program in `folder`, whose standard input is `folder / "input"`."""
    (folder / "input").write_text("given")
    stdin = os.open(folder / "input", os.O_RDONLY)
    out = os.open(folder / "out", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    err = os.open(folder / "err", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        pid = start(argv, str(folder), changes.get("env", ENV), (stdin, out, err), enter)
    finally:
        for descriptor in (stdin, out, err):
            os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    assert status == 0, (folder / "err").read_text()
    return [str(pid), *(folder / "out").read_text().splitlines()]


def refusal(folder: Path, *argv: str, cwd: str = "", enter: Enter = None, path: str = "") -> str:
    """Return why a program was not started; check that no child and no descriptor is left."""
    gc.disable()  # otherwise a descriptor of another test may be closed in between
    try:
        descriptors, others = os.listdir("/proc/self/fd"), children(os.getpid())
        with pytest.raises((OSError, ValueError)) as raised:
            start(argv, cwd or str(folder), {"PATH": path or ENV["PATH"]}, (0, 1, 2), enter)
        assert set(os.listdir("/proc/self/fd")) <= set(descriptors)  # another thread may close one meanwhile
        assert children(os.getpid()) <= others, "one of an earlier test may have ended meanwhile"
    finally:
        gc.enable()
    return str(raised.value)


def test_streams_folder_and_environment_are_the_given_ones(tmp_path: Path, enter: Enter) -> None:
    assert said(tmp_path, "sh", "-c", "cat; echo; pwd; echo $ONE$HOME; echo oops >&2", enter=enter)[1:] == [
        "given",
        str(tmp_path),
        "1",
    ]
    assert (tmp_path / "err").read_text() == "oops\n"


def test_it_leads_a_session_of_its_own(tmp_path: Path, enter: Enter) -> None:
    pid, ids = said(tmp_path, "cut", "-d", " ", "-f", "5,6", "/proc/self/stat", enter=enter)
    assert ids == f"{pid} {pid}"


def test_it_has_no_other_descriptor(tmp_path: Path, enter: Enter) -> None:
    ours = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(ours, True)
    try:
        _, *open_ones = said(tmp_path, "sh", "-c", "ls /proc/$$/fd", enter=enter)
    finally:
        os.close(ours)
    assert open_ones == ["0", "1", "2"]


def test_no_signal_is_ignored_because_python_ignores_it(tmp_path: Path, enter: Enter) -> None:
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    _, *lines = said(tmp_path, "grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status", enter=enter)
    assert [int(line.split()[1], 16) & ORDINARY for line in lines] == [0, 0]


def test_enter_changes_the_program_and_not_its_starter(tmp_path: Path) -> None:
    def closed(streams: Streams) -> None:
        os.umask(0o077)

    before = os.umask(0o022)
    try:
        assert said(tmp_path, "sh", "-c", "umask", enter=closed)[1:] == ["0077"]
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def test_a_program_is_found_as_a_shell_finds_it(tmp_path: Path, enter: Enter) -> None:
    for name, mode, word in (("first", 0o644, "wrong"), ("second", 0o755, "right"), ("third", 0o755, "late")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text(f"#!/bin/sh\necho {word}\n")
        (tmp_path / name / "tool").chmod(mode)
    path = ":".join(str(tmp_path / name) for name in ("none", "first", "second", "third"))
    assert said(tmp_path, "tool", env={"PATH": path}, enter=enter)[1:] == ["right"]
    assert (
        refusal(tmp_path, "tool", path=f"{tmp_path}/first:{tmp_path}/none", enter=enter)
        == "[Errno 13] Permission denied: 'tool'"
    )


def test_a_program_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path, enter: Enter) -> None:
    missing = f"{tmp_path}/missing"
    (tmp_path / "garbage").write_text("garbage")
    (tmp_path / "garbage").chmod(0o755)
    assert refusal(tmp_path, "no-such-tool", enter=enter) == "[Errno 2] No such file or directory: 'no-such-tool'"
    assert refusal(tmp_path, missing, enter=enter) == f"[Errno 2] No such file or directory: '{missing}'"
    assert refusal(tmp_path, "true", cwd=missing, enter=enter) == f"[Errno 2] No such file or directory: '{missing}'"
    assert refusal(tmp_path, "./garbage", enter=enter) == "[Errno 8] Exec format error: './garbage'"
    assert refusal(tmp_path, "true", "with\0null", enter=enter) == "embedded null byte"


def test_a_failing_enter_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    def refused(streams: Streams) -> None:
        raise OSError("there is no room")

    assert refusal(tmp_path, "true", enter=refused) == "there is no room"
    assert refusal(tmp_path, "true", enter=lambda _: sys.exit()) == "SystemExit()"


def test_whoever_starts_it_stays_where_it_stands(tmp_path: Path, enter: Enter) -> None:
    before = os.getcwd()
    said(tmp_path, "true", enter=enter)
    refusal(tmp_path, "no-such-tool", enter=enter)
    assert os.getcwd() == before
