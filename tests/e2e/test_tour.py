"""The README's tour, executed: every command, and its printed output."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Step:
    """A command of the tour, the output it shows, the exit code it names."""

    command: str
    shown: tuple[str, ...]
    code: int


def steps(text: str) -> Iterator[Step]:
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *rest = part.splitlines()
            more = [line[2:] for line in rest if line.startswith("> ")]
            shown = [line for line in rest if not line.startswith("> ")]
            exits = [line for line in shown if re.fullmatch(r"\[exit \d+\]", line)]
            code = int(exits[0][6:-1]) if exits else 0
            yield Step("\n".join([first, *more]), tuple(line for line in shown if line not in exits), code)


def script(tour: list[Step]) -> str:
    """Return a shell script that marks each command's output and exit code, and stops what it started at its end."""
    at_last = "trap './dev-cluster/down > /dev/null 2>&1' EXIT\n"
    lines = [f'{{ {step.command}\n}} 2>&1; echo; echo "@@@ $?"' for step in tour]
    return at_last + "\n".join(line.replace('echo; echo "@@@ $?"', 'code=$?; echo; echo "@@@ $code"') for line in lines)


def matches(shown: tuple[str, ...], output: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in "\n".join(shown).split("…"))
    return not shown or re.search(pattern.replace(r"\ ", r"\s+"), output, re.DOTALL) is not None


def test_the_readme_tour_does_what_it_shows(tmp_path: Path) -> None:
    """Runs in a new account: the text sets all it uses, and nothing is left behind."""
    tour = list(steps((ROOT / "README.md").read_text()))
    assert len(tour) >= 12
    before = state_of(ROOT)
    session = subprocess.run(
        ["bash", "--norc"],
        input=script(tour),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=nothing_set(tmp_path),
        timeout=2 * PATIENCE,
    )
    outputs = re.split(r"\n@@@ (\d+)\n", session.stdout)
    for step, output, code in zip(tour, outputs[::2], outputs[1::2], strict=False):
        assert int(code) == step.code, f"$ {step.command}\n{output}"
        assert matches(step.shown, output), f"$ {step.command}\n{output}\n--- shown in the README:\n{step.shown}"
    assert len(outputs) == 2 * len(tour) + 1, session.stdout + session.stderr
    assert state_of(ROOT) == before
    assert not (tmp_path / "person" / ".service").exists(), "the tour has a home of its own"
    assert list(tmp_path.glob("tmp.*")) == []


def nothing_set(folder: Path) -> dict[str, str]:
    """Return the environment of a new account."""
    home = folder / "person"
    home.mkdir()
    return {"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(folder), "LANG": "C.UTF-8"}


def state_of(clone: Path) -> list[str]:
    """Return the commit, the branches and the changes of a repository."""
    looks = (("rev-parse", "HEAD"), ("branch", "--list"), ("status", "--porcelain"))
    return [subprocess.run(["git", "-C", clone, *look], capture_output=True, text=True).stdout for look in looks]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Create a newcomer's clone, in which `service` does nothing."""
    folder = tmp_path / "clone"
    for name in ("dev-cluster/up", ".venv/bin/service"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    git = ("git", "-c", "user.name=me", "-c", "user.email=me@example.invalid")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "All of it")):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


def type_all(commands: list[str], clone: Path) -> None:
    """Type commands as a person does: a failing line does not end the shell."""
    typed = "\n".join(commands) + "\n"
    environment = nothing_set(clone.parent) | {"PATH": f"{clone}/.venv/bin:{os.environ['PATH']}"}
    subprocess.run(["bash", "--norc", "-i"], input=typed, cwd=clone, env=environment, capture_output=True, text=True)
    shutil.rmtree(clone.parent / "person")


def test_nobody_who_leaves_lines_out_changes_their_own_clone(clone: Path) -> None:
    """Tries each line alone, all but one, and the blocks in reverse order."""
    tour = [step.command for step in steps((ROOT / "README.md").read_text())]
    before = state_of(clone)
    for number, command in enumerate(tour):
        for typed in ([command], [*tour[:number], *tour[number + 1 :]]):
            type_all(typed, clone)
            assert state_of(clone) == before, typed
    type_all(tour[::-1], clone)
    assert state_of(clone) == before


def test_the_look_at_the_clone_can_fail(clone: Path) -> None:
    before = state_of(clone)
    type_all(['cd "${TOUR:?}/shop" && git init -q', "echo 1 > limiter.py"], clone)
    assert state_of(clone) != before


def test_every_variable_of_the_tour_is_set_by_the_tour_itself() -> None:
    """An unset one would send a newcomer's commands to another folder."""
    known = {"PATH", "PWD", "HOME"}
    for step in steps((ROOT / "README.md").read_text()):
        text = re.sub(r"(?s)(?<=<<'END').*|awk '[^']*'", "", step.command)
        known |= set(re.findall(r"(?:^|\s|;)([A-Za-z_]\w*)=", text))
        assert set(re.findall(r"\$\{?([A-Za-z_]\w*)", text)) <= known, step.command


@pytest.mark.parametrize(
    ("shown", "output", "verdict"),
    [(("a … c",), "a  b\nc", True), (("a … d",), "a b c", False), (("…",), "anything", True), ((), "anything", True)],
)
def test_the_tour_reader_can_fail(shown: tuple[str, ...], output: str, verdict: bool) -> None:
    assert matches(shown, output) is verdict
