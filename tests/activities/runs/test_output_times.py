"""When a run's output grew: an index beside it, from which each line of a transcript has its time."""

import os
from pathlib import Path

import pytest

from activities.agents import shell, transcript
from activities.runs import output_times
from activities.runs.output_times import INDEX, OutputTimes
from activities.runs.supervised_run import run
from tests.activities.runs.conftest import RequestFor


def grow(output: Path, text: str, at: float) -> None:
    with output.open("a") as file:
        file.write(text)
    os.utime(output, (at, at))
    output_times.note(output)


def test_a_line_has_the_time_at_which_the_output_was_seen_with_it(tmp_path: Path) -> None:
    output = tmp_path / "stdout.log"
    grow(output, "one\n", 100.0)
    output_times.note(output)
    grow(output, "two\nthree\n", 200.5)
    times = output_times.read(output)
    assert times == OutputTimes((4, 14), (100.0, 200.5)), "what has not grown is not counted again"
    assert [times.written_at(offset) for offset in (0, 3, 4, 13, 14)] == [100.0, 100.0, 200.5, 200.5, None]


@pytest.mark.parametrize("index", [None, b"", b"x\n7\n\xff 3\n-1 2\n", b"9 1.0\n4 2.0\n9 3.0\n"])
def test_an_index_that_is_missing_or_damaged_leaves_times_unknown(tmp_path: Path, index: bytes | None) -> None:
    if index is not None:
        (tmp_path / INDEX).write_bytes(index)
    assert output_times.read(tmp_path / "stdout.log").written_at(20) is None


def test_a_link_in_place_of_the_index_is_neither_written_nor_read(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("1 1.0\n")
    (tmp_path / INDEX).symlink_to(other)
    grow(tmp_path / "stdout.log", "one\n", 100.0)
    assert (other.read_text(), output_times.read(tmp_path / "stdout.log")) == ("1 1.0\n", OutputTimes())


async def test_a_run_keeps_the_times_of_its_output(request_for: RequestFor) -> None:
    request = request_for("echo one")
    await run(request, lambda _: None)
    outputs = transcript.programs(request.run_dir, over=True)
    [entry] = transcript.before(outputs, shell.entries, 2**62, limit=9, longest=200).entries
    assert entry.written_at == pytest.approx((request.run_dir / "stdout.log").stat().st_mtime, abs=0.1)
