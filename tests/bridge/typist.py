"""A person who types the commands that were printed (ruling O7)."""

import shlex
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from cli.main import main
from tests.activities.git.conftest import ENV
from workflows.model.errors import Commands


def of_hint(hint: str) -> tuple[str, ...]:
    """The commands of a refusal, in order."""
    return hint.commands if isinstance(hint, Commands) else (hint,)


def type_all(commands: Iterable[str], resolve: Callable[[Path], None] | None = None) -> None:
    """Type each one as it was printed; where a merge stops at a conflict, `resolve` writes the files."""
    for command in commands:
        words = shlex.split(command, comments=True)
        if words[0] == "service":
            assert main(words[1:]) == 0, command
            continue
        assert words[:2] == ["git", "-C"], command
        done = subprocess.run(words, env=ENV, check=False, capture_output=True, text=True)
        if done.returncode and resolve and "merge" in words:
            resolve(Path(words[2]))
            continue
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
