"""Orders arrive unchanged; another installation, or another state of it, is detected."""

import os
from pathlib import Path

import pytest

from activities.runs import os_processes
from cli.warm import order
from cli.warm.order import Order, read_at_start, stamp

pytestmark = pytest.mark.ruling("K7")

STREAMS = [("strict", False, False), ("surrogateescape", True, False), ("backslashreplace", True, True)]


def test_an_order_arrives_as_it_was_given() -> None:
    words = ["service", "agent", "ask", "scout", "", "two\nlines = ünï", "\udcff"]
    environment = {b"A": b"1=2", b"EMPTY": b"", b"BYTES": b"\xff\n"}
    given = Order("of this", words, environment, streams=STREAMS, umask=0o027, ignored=[1, 2])
    assert vars(Order.decode(given.encode())) == vars(given)


def test_nothing_given_is_nothing_taken() -> None:
    given = Order("s", ["service"], {}, streams=STREAMS, umask=0, ignored=[])
    taken = Order.decode(given.encode())
    assert (taken.words, taken.environment, taken.ignored) == (["service"], {}, [])


def test_the_stamp_changes_with_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in order.PACKAGES:
        (tmp_path / package / "deeper").mkdir(parents=True)
    module = tmp_path / "bridge" / "deeper" / "one.py"
    module.write_text("1")
    os.utime(module, ns=(1, 1))
    monkeypatch.setattr(order, "_HERE", str(tmp_path))
    before = stamp()
    assert stamp() == before
    os.utime(module, ns=(1, 2))
    changed = stamp()
    module.with_name("two.py").touch()
    assert len({before, changed, stamp()}) == 3
    added = stamp()
    (tmp_path / "bridge" / "__pycache__").mkdir()
    (tmp_path / "bridge" / "__pycache__" / "one.pyc").touch()
    assert stamp() == added


def test_the_mark_of_a_run_is_known_without_an_import() -> None:
    assert order.MARK == os_processes.MARK


def test_what_python_reads_as_it_starts_is_told_from_the_rest() -> None:
    environment = {b"PYTHONPATH": b"/x", b"LD_PRELOAD": b"y", b"PATH": b"z", b"SERVICE_HOME": b"h"}
    assert read_at_start(environment) == {b"PYTHONPATH": b"/x", b"LD_PRELOAD": b"y"}
