"""A home for Kimi with hooks that enforce the policy and supply the prompt; all else in it is the user's own."""

import contextlib
import fcntl
import os
import shlex
import stat
import sys
import tomllib
from pathlib import Path
from tempfile import NamedTemporaryFile

from activities.agents import kimi_guard
from activities.agents.adapter import CannotLaunchError
from workflows.contract.models import AutonomyPolicy

WORKTREE = kimi_guard.WORKTREE
PROMPT = "SERVICE_PROMPT"
"""Variable with the path of a run's prompt."""

ASKS = "Your instructions are the hook result before this line: do what they say."
"""Prompt on the command line, which the hook tells apart from prompts of the agent's own helpers."""

TOOLS = "Write|Edit|Bash|Agent|AgentSwarm|mcp__.*"
"""Tools that change something, or start something that may; the effects of MCP servers' tools are unknown."""

_OWN = ("config.toml", "config.lock", "sessions", "session_index.jsonl", "logs")
"""Entries that belong to this home; all others are links to the user's."""


def place(home: Path, policy: AutonomyPolicy) -> Path:
    """Return the home of a policy; auto grants nothing for certain and is read-only."""
    return home / (AutonomyPolicy.READ_ONLY if policy is AutonomyPolicy.AUTO else policy)


def prepare(home: Path, users: Path, policy: AutonomyPolicy) -> Path:
    """Update a policy's home from the user's, and add the hooks."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for entry in users.iterdir() if users.is_dir() else ():
        if entry.name not in _OWN:
            with contextlib.suppress(FileExistsError):
                (home / entry.name).symlink_to(entry)
    _write(home, _config(users / "config.toml", policy))
    return home


def _write(home: Path, config: str) -> None:
    """Write the settings, which other jobs start with: only if they changed, and keep who may read them.

    Kimi ignores settings that it cannot read, and the hook with them.
    """
    path = home / "config.toml"
    with (home / "config.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = path.stat() if path.exists() else None
        if before and path.read_text("utf-8") == config:
            return
        with NamedTemporaryFile("w", encoding="utf-8", dir=home, prefix="config.", delete=False) as file:
            file.write(config)
            if before:
                os.fchown(file.fileno(), -1, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
        os.replace(file.name, path)


def _guard(policy: AutonomyPolicy) -> str:
    guard = (sys.executable, "-I", "-S", kimi_guard.__file__, place(Path(), policy).name)
    return f"""
[[hooks]]
event = "PreToolUse"
matcher = "{TOOLS}"
command = '{shlex.join(guard)} || exit {kimi_guard.REFUSED}'
timeout = 30
"""


def _config(users: Path, policy: AutonomyPolicy) -> str:
    hooks = f"""
[[hooks]]
event = "UserPromptSubmit"
command = 'grep -qF "{ASKS}" && cat -- "${PROMPT}"'
timeout = 30
"""
    if policy is not AutonomyPolicy.DANGER_FULL_ACCESS:
        hooks = _guard(policy) + hooks
    try:
        own = users.read_text("utf-8")
    except FileNotFoundError:
        return hooks
    text = f"{own}\n{hooks}"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if policy is AutonomyPolicy.DANGER_FULL_ACCESS:
            return own  # the prompt names the file
        raise CannotLaunchError(
            f"{users} leaves no room for the hook that keeps a job from writing: {error}",
            "write its hooks as [[hooks]] tables",
        ) from None
    return text
