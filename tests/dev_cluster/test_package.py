"""The service as a package: built, installed into other environments, and used there without settings.

`.ci/run` runs this file as a check of its own. With THOROUGH both sets of versions are installed for every Python.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.written import ROOT

pytestmark = pytest.mark.long

SECONDS = 400
PACKAGES = ("workflows", "activities", "bridge", "cli")
IMPORTER = """\
from bridge.operations.service import Service
from workflows.contract.parse import read_result

reveal_type(read_result(b""))
reveal_type(Service.locate().home.root)
"""
HELP_OF_EVERY_COMMAND = """\
from cli.main import NOUNS, command_of, leaves, main

for noun in NOUNS:
    for path, _ in leaves(command_of(noun), noun):
        assert main([*path.split(), "--help"]) == 0, path
"""
PINNED = ("--require-hashes", "--requirement", ROOT / "dev-cluster" / "requirements.txt")
MINORS = (11, 12, 13, 14)


def pythons() -> list[Path]:
    """Return one interpreter of each supported version that this machine has, oldest first."""
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    programs = []
    for minor in MINORS:
        on_path = shutil.which(f"python3.{minor}")
        places = [*([Path(on_path)] if on_path else []), *sorted(folder.glob(f"3.{minor}.*/bin/python"))]
        programs += [place for place in places if _works(place)][:1]
    return programs or [Path(sys.executable)]


def _works(python: Path) -> bool:
    """Return whether this is an interpreter, and not a shim of a version that is switched off."""
    return subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode == 0


def pairs() -> list[tuple[str, Path]]:
    """Return which versions are installed for which Python: pinned ones for the oldest, newest ones for the others."""
    oldest, *others = every = pythons()
    if os.environ.get("THOROUGH"):
        return [(versions, python) for python in every for versions in ("pinned", "newest")]
    return [("pinned", oldest), *(("newest", python) for python in others or every)]


def run(*words: object, **options: object) -> str:
    """Return a command's output; show the output of one that fails."""
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return str(done.stdout)


def built(source: Path, folder: Path) -> tuple[Path, Path]:
    """Build source distribution and wheel."""
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=source)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the source distribution alone, as from an index."""
    folder = tmp_path_factory.mktemp("package")
    source, direct = built(ROOT, folder / "here")
    run("tar", "-xf", source, "-C", folder)  # early releases of Python 3.11 lack filters, later ones require one
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"dev-cluster/setup", "dev-cluster/requirements.txt", "tests/conftest.py", ".ci/run", "LICENSE"} <= names
    assert not [name for name in names if "_cache/" in name or "__pycache__" in name or ".venv" in name]
    _, rebuilt = built(folder / source.name.removesuffix(".tar.gz"), folder / "again")
    with zipfile.ZipFile(rebuilt) as one, zipfile.ZipFile(direct) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
    return rebuilt


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an environment with the wheel; its dependencies are taken from ours, so that no index is needed."""
    made = tmp_path_factory.mktemp("else where") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", made)
    libraries = Path(sysconfig.get_path("purelib", vars={"base": str(made), "platbase": str(made)}))
    run(sys.executable, "-m", "pip", "--python", made, "install", "--no-deps", "--quiet", wheel)
    (libraries / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # the .pth files of ours are not read
    (made / "bin" / "temporal").symlink_to(Path(sys.executable).with_name("temporal"))
    return made


@pytest.fixture
def bare(environment: Path, tmp_path: Path) -> dict[str, str]:
    """Return the variables of a new account."""
    return new_account(environment, tmp_path)


def new_account(environment: Path, folder: Path) -> dict[str, str]:
    (folder / "user").mkdir()
    (folder / "tmp").mkdir()
    path = os.pathsep.join((str(environment / "bin"), "/usr/local/bin", "/usr/bin", "/bin"))
    return {"HOME": str(folder / "user"), "TMPDIR": str(folder / "tmp"), "PATH": path, "LANG": "C.UTF-8"}


@pytest.mark.parametrize(("versions", "python"), pairs(), ids=str)
def test_it_works_in_an_empty_environment(versions: str, python: Path, wheel: Path, tmp_path: Path) -> None:
    made = tmp_path / "venv"
    run(python, "-m", "venv", "--without-pip", made)
    pip = (sys.executable, "-m", "pip", "--python", made, "install", "--quiet")
    if versions == "pinned":
        run(*pip, "--no-deps", *PINNED)
    run(*pip, *(("--no-deps",) if versions == "pinned" else ()), wheel)
    account = new_account(made, tmp_path)
    assert "Usage: service job tree" in run(made / "bin/python", "-P", "-c", HELP_OF_EVERY_COMMAND, env=account)
    played = json.loads(run("service", "demo", "--json", env=account, cwd=tmp_path / "user"))
    assert (played["state"], played["jobs"]) == ("done", 8)
    assert json.loads(run("service", "job", "list", "--json", env=account, cwd=tmp_path)) == []


def test_it_is_its_own_and_says_its_version(environment: Path, bare: dict[str, str], tmp_path: Path) -> None:
    assert run("service", "--version", env=bare, cwd=tmp_path).startswith("service ")
    where = f"import {', '.join(PACKAGES)}; print({', '.join(f'{package}.__file__' for package in PACKAGES)})"
    places = run(environment / "bin/python", "-c", where, env=bare, cwd=tmp_path).split(" /")
    assert all(str(environment) in f"/{place}" for place in places), "not the checkout's"


@pytest.mark.ruling("engine:demo")
def test_the_demo_plays_and_leaves_nothing(bare: dict[str, str], tmp_path: Path) -> None:
    outcome = json.loads(run("service", "demo", "--json", env=bare, cwd=tmp_path / "user"))
    assert (outcome["state"], outcome["jobs"]) == ("done", 8)
    assert [*(tmp_path / "user").iterdir(), *(tmp_path / "tmp").iterdir()] == []


@pytest.mark.ruling("engine:init")
def test_it_begins_in_a_repository_of_somebody(bare: dict[str, str], tmp_path: Path) -> None:
    garden, program = tmp_path / "user" / "garden", tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 0.169.0\n")
    program.chmod(0o755)
    who = ("-c", "user.name=me", "-c", "user.email=me@example.invalid")
    run("git", "init", "-q", garden, env=bare)
    run("git", "-C", garden, *who, "commit", "-q", "--allow-empty", "-m", "first", env=bare)
    env = bare | {"PATH": f"{bare['PATH']}{os.pathsep}{program.parent}"}
    outcome = json.loads(run("service", "init", "--yes", "--no-start", "--json", env=env, cwd=garden))
    assert outcome["repository"]["name"] == "local/garden"
    assert "builder" in run("service", "agent", "list", env=env, cwd=garden)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_take_its_completion(shell: str, bare: dict[str, str], tmp_path: Path) -> None:
    script = run("service", "completion", shell, env=bare, cwd=tmp_path)
    assert "service" in script
    if shell == "bash":
        run("bash", "-n", "-c", script, env=bare)


def test_whoever_imports_it_has_its_types(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "importer.py").write_text(IMPORTER)
    checker = (sys.executable, "-m", "mypy", "--strict", "--python-executable", environment / "bin/python")
    output = run(*checker, "importer.py", cwd=tmp_path)
    assert 'Revealed type is "workflows.contract.parse.Accepted | workflows.contract.parse.Rejected"' in output
    assert 'Revealed type is "pathlib.Path"' in output
