"""The README's tour, executed: every command, and what it says it prints."""

import os
import re
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
    """One shell session that marks off each command's output and exit code."""
    lines = [f'{{ {step.command}\n}} 2>&1; echo; echo "@@@ $?"' for step in tour]
    return "\n".join(line.replace('echo; echo "@@@ $?"', 'code=$?; echo; echo "@@@ $code"') for line in lines)


def matches(shown: tuple[str, ...], output: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in "\n".join(shown).split("…"))
    return not shown or re.search(pattern.replace(r"\ ", r"\s+"), output, re.DOTALL) is not None


def test_the_readme_tour_does_what_it_shows(tmp_path: Path) -> None:
    tour = list(steps((ROOT / "README.md").read_text()))
    assert len(tour) >= 12
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SERVICE_", "TEMPORAL_"))}
    environment.pop("TOUR", None)  # the text sets what it uses
    environment |= {"SERVICE_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    try:
        session = subprocess.run(
            ["bash"],
            input=script(tour),
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            timeout=2 * PATIENCE,
        )
    finally:
        subprocess.run(["dev-cluster/down"], cwd=ROOT, env=environment, capture_output=True)
    outputs = re.split(r"\n@@@ (\d+)\n", session.stdout)
    for step, output, code in zip(tour, outputs[::2], outputs[1::2], strict=False):
        assert int(code) == step.code, f"$ {step.command}\n{output}"
        assert matches(step.shown, output), f"$ {step.command}\n{output}\n--- shown in the README:\n{step.shown}"
    assert len(outputs) == 2 * len(tour) + 1, session.stdout + session.stderr


def test_every_variable_of_the_tour_is_set_by_the_tour_itself() -> None:
    """As printed, an unset one would send a newcomer's commands to another folder."""
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
