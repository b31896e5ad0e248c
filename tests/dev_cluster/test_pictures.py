"""The README's pictures: made from terminal output, small, and without names of a machine."""

import getpass
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.e2e.browser import needs_browser
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / ".github/pictures").iterdir())
DRAWN = [path for path in PICTURES if path.suffix == ".svg"]
SEEN = ("changes_requested", "(replan)", "running", "done", "@keyframes")
GREEN = "\x1b[32m"


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    """Import the drawing script, which is not part of a package."""
    path = ROOT / "dev-cluster/terminal_svg.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def spans(svg: str) -> dict[str, dict[str, str]]:
    """Return every piece of text with its attributes."""
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}tspan")
    return {each.text or "": dict(each.attrib) for each in found}


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_small(path: Path) -> None:
    assert path.suffix in {".svg", ".png"}
    assert path.stat().st_size < 300_000


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.name)
def test_a_drawing_needs_nothing_from_elsewhere_and_names_no_machine(path: Path) -> None:
    text = path.read_text()
    ElementTree.fromstring(text)
    assert not re.search(r"<script|@import|@font-face|url\(|href|<image|<foreignObject", text)
    assert not re.search(r"/(?:tmp|home|root|Users|work)/", text)
    for name in (socket.gethostname(), f"{getpass.getuser()}@"):
        assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)


def test_the_tree_is_seen_to_fail_a_check_and_to_be_planned_again() -> None:
    text = (ROOT / ".github/pictures/tree.svg").read_text()
    assert all(word in text for word in SEEN)


@pytest.mark.long
@needs_browser
@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_all_of_them_can_be_made_anew(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short:  # for the browser's socket, whose path may have 107 bytes
        done = subprocess.run(
            [ROOT / "dev-cluster/pictures", tmp_path / "made"],
            env={**os.environ, "TMPDIR": short},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        assert list(Path(short).iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [path.name for path in PICTURES]
    made = (tmp_path / "made" / "tree.svg").read_text()
    assert all(word in made for word in SEEN)


def test_colours_go_on_to_the_next_line_until_they_end(drawing: ModuleType) -> None:
    drawn = spans(drawing.picture([[f"{GREEN}one", "two\x1b[0m three", "four"]], [1], "t", 20))
    assert drawn["one"]["fill"] == drawn["two"]["fill"]
    assert "fill" not in drawn[" three"]
    assert "fill" not in drawn["four"]


def test_what_is_special_in_svg_is_text(drawing: ModuleType) -> None:
    assert "<b>&" in spans(drawing.picture([["<b>&"]], [1], "<t>", 20))


def test_wide_characters_take_two_columns(drawing: ModuleType) -> None:
    drawn = spans(drawing.picture([[f"界{GREEN}a"]], [1], "t", 20))
    assert float(drawn["界"]["textLength"]) == 2 * drawing.WIDE
    assert float(drawn["a"]["x"]) == pytest.approx(drawing.MARGIN + 2 * drawing.WIDE)


def test_a_line_is_drawn_once_for_as_long_as_it_stays(drawing: ModuleType) -> None:
    screens = [["same", "one"], ["same", "two"], ["same", "two", "three"]]
    shown = {(each.line, each.first, each.until) for each in drawing.showings(screens) if each.line}
    assert shown == {("same", 0, 3), ("one", 0, 1), ("two", 1, 3), ("three", 2, 3)}


def test_where_nothing_may_move_the_last_screen_stands(drawing: ModuleType) -> None:
    svg = drawing.picture([["one"], ["two"]], [1, 3], "t", 20)
    assert "0.00%{visibility:visible}25.00%{visibility:hidden}}.k0-1{animation-name:k0-1;visibility:hidden}" in svg
    assert "0%{visibility:hidden}25.00%{visibility:visible}}.k1-2{animation-name:k1-2;visibility:visible}" in svg
    assert "prefers-reduced-motion" in svg
    assert "animation-duration:4s" in svg


@pytest.mark.parametrize(
    ("codes", "colour"),
    [
        ("38;5;9", "#ffa198"),
        ("38;5;196", "#ff0000"),
        ("38;5;232", "#080808"),
        ("38;2;1;2;3", "#010203"),
        ("48;5;9", ""),
    ],
)
def test_colours_of_every_kind_are_read(drawing: ModuleType, codes: str, colour: str) -> None:
    drawn = spans(drawing.picture([[f"\x1b[{codes}mtext"]], [1], "t", 20))
    assert drawn["text"].get("fill", "") == colour
