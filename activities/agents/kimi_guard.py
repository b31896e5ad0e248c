"""A hook that keeps Kimi within its job's policy: exit code 2 refuses a tool call. An error in this program also exits
with 2.

A standalone program, standard library only: `python -I -S kimi_guard.py read-only|workspace-write`, the call on
standard input. Kimi runs the tool after any other exit code.
"""

import json
import os
import sys
from pathlib import Path

WORKTREE = "SERVICE_WORKTREE"
REFUSED = 2
SAYS = "this job may"
"""Beginning of each refusal."""


def refusal(policy: str, call: dict[str, object], worktree: str) -> str:
    """Return why a call is refused; empty if it is permitted."""
    if policy != "workspace-write":
        return f"{SAYS} only read: the tool is refused"
    if call.get("tool_name") not in ("Write", "Edit"):
        return f"{SAYS} edit files, but run no commands"
    given = call.get("tool_input")
    path = given.get("path", given.get("file_path")) if isinstance(given, dict) else None
    inside = isinstance(path, str) and is_inside(path, Path(worktree).resolve())
    return "" if inside else f"{SAYS} only edit files below {worktree}, and nothing of git's own"


def is_inside(path: str, worktree: Path) -> bool:
    """Return whether Kimi would write below the worktree; a leading tilde means some user's home."""
    target = (worktree / path).resolve()
    if path.startswith("~") or not target.is_relative_to(worktree):
        return False
    return ".git" not in target.relative_to(worktree).parts


def main() -> int:
    """Check one tool call: print nothing if it is permitted, or print why it is refused."""
    try:
        why = refusal(sys.argv[1], json.load(sys.stdin), os.environ[WORKTREE])
    except BaseException as error:
        why = f"{SAYS} not use the tool, whose call cannot be checked: {type(error).__name__}"
    sys.stderr.write(why)
    return REFUSED if why else 0


if __name__ == "__main__":
    sys.exit(main())
