"""The README's pictures: made from terminal output, small, and without names of a machine."""

import getpass
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.e2e.browser import needs_browser
from tests.e2e.programs import need
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / ".github/pictures").iterdir())
DRAWN = [path for path in PICTURES if path.suffix == ".svg"]
SEEN = ("changes requested", "lead plans again", "running", "done", "is merged into", "@keyframes")
MOMENT = ("Have the team build", "1 MCP task", "the next morning", "requests your input", "redis", "built and merged")
GREEN = "\x1b[32m"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    """Import the script, which is not part of a package."""
    path = ROOT / "dev-cluster/pictures.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(svg: str) -> dict[str, str]:
    """Return every piece of text with its class."""
    elements = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return {(element.text or "").replace("\xa0", " ").strip(): element.get("class", "") for element in elements}


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


def check_words(folder: Path) -> None:
    """Check that the recordings show what they are for."""
    for name, words in {"session.svg": SEEN, "claude.svg": MOMENT}.items():
        text = (folder / name).read_text().replace("&#160;", " ").replace("\xa0", " ")
        assert [word for word in words if word not in text] == [], name


def test_a_tree_is_seen_to_be_planned_again_and_one_from_claude_to_be_answered_and_merged() -> None:
    check_words(ROOT / ".github/pictures")


@pytest.mark.long
@needs_browser
@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_all_of_them_can_be_made_anew(tmp_path: Path) -> None:
    need("claude")
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
    check_words(tmp_path / "made")


def test_colours_go_on_to_the_next_line_until_they_end(pictures: ModuleType) -> None:
    drawn = texts(pictures.drawing([[f"{GREEN}one", "two\x1b[0m three", "four"]], [1], "t"))
    assert drawn["one"] == drawn["two"] != drawn["three"] == drawn["four"]


def test_what_is_special_in_svg_is_text(pictures: ModuleType) -> None:
    assert {"<b>&", "<t>"} <= set(texts(pictures.drawing([["<b>&"]], [1], "<t>")))


def test_screens_follow_one_another_and_where_nothing_may_move_the_last_one_stands(pictures: ModuleType) -> None:
    svg = pictures.drawing([["one"], ["two"]], [1, 3], "t")
    assert "@keyframes s0{0%{visibility:visible}25.00%{visibility:hidden}}" in svg
    assert ".s0{animation:s0 4s step-end infinite;visibility:hidden}" in svg
    assert "@keyframes s1{0%{visibility:hidden}25.00%{visibility:visible}}" in svg
    assert ".s1{animation:s1 4s step-end infinite;visibility:visible}" in svg
    assert "prefers-reduced-motion:reduce){g{animation:none!important}}" in svg
    assert "animation" not in pictures.drawing([["one"]], [1], "t").replace("g{animation:none!important}", "")
