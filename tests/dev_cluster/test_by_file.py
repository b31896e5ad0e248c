"""Files that are handed to workers whole: every test runs once, and nothing that goes wrong is passed over."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.written import ROOT


def _ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "pytest", "-p", "tests.by_file", "-p", "no:cacheprovider", "-c", "/dev/null"]
    command += ["--rootdir", str(folder), "-n", "2", "--maxschedchunk", "1", "-o", "console_output_style=classic"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_every_test_runs_once_and_what_goes_wrong_is_a_failure(tmp_path: Path) -> None:
    texts = {
        "good": "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_it(n): pass\n",
        "other": "def test_other(): pass\ndef test_it(): pass\n",
        "empty": "",
        "bad": "def test_it(): assert 1 == 2\ndef test_other(): pass\n",
        "broken": "import nothing_of_this_name\ndef test_it(): pass\n",
        "crashing": "import os\ndef test_it(): os._exit(3)\n",
    }
    for name, text in texts.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    ran = _ran(tmp_path)
    assert ran.returncode == 1, ran.stdout
    assert "FAILED test_bad.py::test_it - assert 1 == 2" in ran.stdout
    assert "ERROR test_broken.py" in ran.stdout
    assert "crashed while running 'test_crashing.py'" in ran.stdout
    assert "not finished: test_crashing.py\n" in ran.stdout
    assert "2 failed, 6 passed, 1 error" in ran.stdout


def test_what_is_selected_is_selected_among_tests(tmp_path: Path) -> None:
    for place in ("first/test_one", "first/test_unselected", "second/test_two"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / f"{place}.py").write_text("def test_it(): pass\ndef test_other(): pass\n")
    assert "2 passed" in _ran(tmp_path, "-n", "1", "-k", "test_other and not unselected").stdout
    assert _ran(tmp_path, "-n", "1", "-k", "nobody").returncode == pytest.ExitCode.NO_TESTS_COLLECTED
