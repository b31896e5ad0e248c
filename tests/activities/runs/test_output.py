"""Reading output in bounded memory."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.runs.output import read_bounded, tail_line

pytestmark = pytest.mark.ruling("engine:runs")


@given(data=st.binary(max_size=60), head=st.integers(0, 40), tail=st.integers(0, 40))
def test_an_excerpt_is_a_true_beginning_and_end(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, head: int, tail: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "excerpt"
    path.write_bytes(data)
    excerpt = read_bounded(path, head, tail)
    assert data.startswith(excerpt.head)
    assert data.endswith(excerpt.tail)
    assert excerpt.size == len(data)
    assert excerpt.omitted == max(0, len(data) - head - tail)
    assert isinstance(excerpt.text, str)


def test_a_gigabyte_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(1 << 30)
        file.seek(0, 2)
        file.write(b"\nlast words\n\n")
    tracemalloc.start()
    assert tail_line(path) == "last words"
    assert read_bounded(path, 1000, 1000).omitted == (1 << 30) + 13 - 2000
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "line"),
    [(b"", ""), (b"\n \n", ""), (b"a\nb", "b"), (b"a\n\xff\xfe\n", "\ufffd\ufffd"), (b"x" * 20000, "x" * 8192)],
)
def test_the_last_line_that_says_something(tmp_path: Path, content: bytes, line: str) -> None:
    (tmp_path / "out").write_bytes(content)
    assert tail_line(tmp_path / "out") == line
    assert tail_line(tmp_path / "absent") == ""
