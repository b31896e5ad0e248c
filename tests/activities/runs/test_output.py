"""Reading output in bounded memory."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.runs.output import last_line, last_lines, read_bounded

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
    assert last_line(path) == "last words"
    assert read_bounded(path, 1000, 1000).omitted == (1 << 30) + 13 - 2000
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", ""),
        (b"\n \n", ""),
        (b"a\nb", "b"),
        (b"a\n\xff\xfe\n", "\ufffd\ufffd"),
        (b"x" * 5000, "x" * 200),
        (b"a" * 20000 + b"z", "a" * 199 + "z"),
    ],
)
def test_the_last_line_that_says_something(tmp_path: Path, content: bytes, line: str) -> None:
    (tmp_path / "out").write_bytes(content)
    assert last_line(tmp_path / "out") == line
    assert last_line(tmp_path / "absent") == ""


def test_the_last_lines_hold_no_part_of_a_secret_that_began_before_them(tmp_path: Path) -> None:
    path = tmp_path / "out"
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA0123\n" * 20 + "-----END RSA PRIVATE KEY-----\n"
    for size in (0, 100, 5000):
        path.write_text("x\n" * size + key + "tail\n" * 20)
        shown = last_lines(path, 1000)
        assert "MIIE" not in shown
        assert shown.endswith("tail\ntail\n")
        assert len(shown) < 1050
    left = int(shown.partition(" bytes left out]\n")[0].removeprefix("["))
    assert left + len(shown.partition("\n")[2]) == path.stat().st_size
    path.write_text("short\n")
    assert last_lines(path, 200) == "short\n"
