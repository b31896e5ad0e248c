"""The console script when another package with one of our names comes earlier on the path (ruling K6)."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from activities.settings.home import Home
from tests.written import ROOT

pytestmark = pytest.mark.ruling("K6")
PACKAGES = ("workflows", "activities", "bridge", "cli")


def entry(folder: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the script as an installer writes it, with the folder first on the path."""
    shutil.copy(ROOT / "cli" / "warm" / "entry.py", folder / "delegation_service.py")
    script = folder / "service"
    script.write_text(
        f"import sys\nsys.path[0:0] = [{str(folder)!r}]\nsys.path.append({str(ROOT)!r})\n"
        "from delegation_service import run\nrun()\n"
    )
    command = [sys.executable, "-P", str(script), *words]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.parametrize("name", PACKAGES)
@pytest.mark.parametrize("kind", ["package", "module", "folder"])
def test_a_package_of_another_is_named_with_the_remedy(home: Home, tmp_path: Path, name: str, kind: str) -> None:
    at = tmp_path / f"{name}.py" if kind == "module" else tmp_path / name
    if kind == "module":
        at.write_text("def main(): ...\n")
    else:
        at.mkdir()
        (at / ("__init__.py" if kind == "package" else "notes.txt")).write_text("")
    if kind == "folder":
        assert entry(tmp_path, "job", "list").returncode == 0, "a folder without modules takes no name"
        return
    for words in (["job", "list"], ["doctor"], ["job", "show", "x"]):
        done = entry(tmp_path, *words)
        assert done.returncode == 1, done
        assert done.stderr == (
            f"error: another package has the name {name} of one of the service's: {str(at)!r}\n"
            "try: install it in an environment of its own: "
            "pipx install delegation-service  (or: uv tool install delegation-service)\n"
        )
    document = json.loads(entry(tmp_path, "job", "list", "--json").stderr)
    assert (document["code"], str(at) in document["error"]) == ("name_taken", True)


def test_where_the_environment_names_it_that_is_said(home: Home, tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "__init__.py").write_text("")
    done = entry(tmp_path, "job", "list", PYTHONPATH=str(tmp_path))
    assert done.stderr.splitlines()[1] == f"try: env -u PYTHONPATH service ...  (PYTHONPATH names {str(tmp_path)!r})"


def test_what_is_not_whole_is_said(home: Home, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('cannot import name x')\n")
    done = entry(tmp_path, "job", "list")
    assert done.returncode == 1
    assert done.stderr.startswith("error: the service is not completely installed: ")
    assert "Traceback" not in done.stderr
    assert json.loads(entry(tmp_path, "job", "list", "--json").stderr)["code"] == "not_whole"


def test_it_runs_the_command_where_all_is_well(home: Home, tmp_path: Path) -> None:
    done = entry(tmp_path, "job", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no jobs")


@pytest.mark.long
def test_the_wheel_holds_it_and_marks_the_packages_as_typed(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        points = next(name for name in names if name.endswith("entry_points.txt"))
        assert "service = delegation_service:run" in wheel.read(points).decode()
        assert b"Classifier: Typing :: Typed" in wheel.read(points.replace("entry_points.txt", "METADATA"))
    assert {"delegation_service.py", *(f"{each}/py.typed" for each in PACKAGES)} <= names
