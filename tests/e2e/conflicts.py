"""Trees whose legs wrote one file, and the printed commands that merge them."""

import shlex
import subprocess
from typing import Any

from tests.e2e.script import Script, leg

WROTE = {"decision": "implemented"}


def writes(**files: str) -> dict[str, Any]:
    return {
        "write": {name.replace("_", "."): text for name, text in files.items()},
        "changes_made": ["src/a.py: made"],
    } | WROTE


def conflicting(script: Script, left: dict[str, Any] | None = None) -> str:
    """Run a tree whose reader depends on two legs that wrote one file; `left` extends the first leg's result."""
    script.answers(
        none={"delegations": [leg("left"), leg("right"), leg("see", "review", deps=["left", "right"])]},
        left=writes(same_txt="left\n") | (left or {}),
        right=writes(same_txt="right\n"),
        see={"write": {"seen.txt": "x"}},
    )
    job = script.ask()
    assert script.until_over(job)["task"]["state"] == "blocked"
    return job


def commands_of(error: str) -> list[str]:
    """The commands that an error on standard error prints."""
    return [line.strip() for line in error.partition("try: ")[2].splitlines()]


def next_of(output: str) -> list[str]:
    """Return the commands of the last block `next:`."""
    return [line.strip() for line in output.rpartition("next:\n")[2].splitlines() if line.startswith("  ")]


def typed(script: Script, commands: list[str]) -> None:
    """Run the printed commands as a person would."""
    for command in commands:
        if command.startswith("service "):
            script.service(*shlex.split(command)[1:])
        else:
            who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
            words = ["git", *who, *shlex.split(command, comments=True)[1:]]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if " merge " in command:
                assert done.returncode == 1, done.stderr
                place = words[words.index("-C") + 1]
                with open(f"{place}/same.txt", "w") as file:
                    file.write("both\n")
                git_add = ["git", "-C", place, "add", "same.txt"]
                subprocess.run(git_add, check=True)
            else:
                assert done.returncode == 0, done.stderr
