"""Close a home that other accounts could open: make its files private, and replace its secrets (rulings N1, N8).

The bridge's token is replaced at once. The seal key can't be replaced while work runs that was sealed with it.
Everybody who has read the key can forge seals, so it is never trusted beside a new one: all keys are replaced when the
daemon starts and nothing is running (`bridge.daemon.replace_seal_key`). Until then `service doctor` reports it.
"""

import json
import logging
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from activities.runs.regular_files import content_of, open_to_append, write_private

log = logging.getLogger("service.home")

STORE, TOKEN, NAMED, KEY = "store.db", "bridge.token", "bridge.tokens", "seal.key"
KEYS, KEY_OPEN, RECORD = "seal.key.d", "seal.key.open", "opened.jsonl"
FOR_AGENTS = "boxes"
"""Folder that stays open, with copies of public files of /etc: the account of agents reads them for its box."""

TOKEN_BYTES = 32
OTHERS, WRITERS = 0o077, 0o022
_TOLD_BYTES = 256 * 1024
_CLOSED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Opened:
    """What was found open, when, and the action taken."""

    at: float
    said: str


def close(home: Path) -> None:
    """Make the home and its files private. Report what others may have read or written, and replace secrets."""
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & OTHERS:
        home.chmod(0o700)
    with os.scandir(home) as listing:
        others = [entry for entry in listing if entry.name != FOR_AGENTS]
    modes = {entry.name: stat.S_IMODE(was) for entry in others if (was := _close_one(entry.path)) is not None}
    there = {name for name in (TOKEN, NAMED, KEY, KEYS) if (home / name).exists()}
    exposed = there if mode & OTHERS else there & modes.keys()
    if not exposed and not (mode & OTHERS and (home / STORE).exists()):
        return  # no file of the service was in it yet, or another file in a closed home was open
    _tell(home, list(_replace_secrets(home, mode, modes, exposed)))


def every(home: Path, since: float) -> list[Opened]:
    """Return the reports since then."""
    try:
        lines = content_of(home / RECORD, _TOLD_BYTES).splitlines()
    except OSError:
        return []
    reports = (json.loads(line) for line in lines if line.endswith(b"}"))
    return [Opened(report["at"], report["said"]) for report in reports if report["at"] >= since]


def _close_one(path: str) -> int | None:
    """Make a file or folder of this account private; return its former mode if it was open. No link is followed."""
    try:
        status = os.lstat(path)
        if not status.st_mode & OTHERS or status.st_uid != os.geteuid():
            return None
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            return None
        descriptor = os.open(path, _CLOSED)
    except OSError:  # it is gone, or this account may not read it
        return None
    try:
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & ~OTHERS)
    finally:
        os.close(descriptor)
    return status.st_mode


def _replace_secrets(home: Path, mode: int, modes: dict[str, int], exposed: set[str]) -> Iterator[str]:
    """Replace secrets that were exposed, and yield a sentence for each thing that was open or replaced."""
    if mode & OTHERS:
        yield f"the service home {home} was open to other accounts (mode {mode:o}); it is closed now"
    for name in sorted(exposed & modes.keys()):
        yield f"{home / name} was open to other accounts (mode {modes[name]:o}); it is closed now"
    if TOKEN in exposed:
        write_private(home / TOKEN, secrets.token_urlsafe(TOKEN_BYTES))
        yield "the bridge's token was replaced: programs need the new one (service bridge token)"
    if modes.get(NAMED, 0) & WRITERS:
        (home / NAMED).replace(home / f"{NAMED}.others")
        yield "others could have added named tokens, so all of them were revoked (service bridge token add NAME)"
    if exposed & {KEY, KEYS}:
        write_private(home / KEY_OPEN, f"{time.time()}\n")
        yield "the seal key is replaced when the daemon starts and nothing is under way (service doctor)"
    if changed := [name for name, was in modes.items() if mode & 0o011 and was & WRITERS and name not in exposed]:
        yield f"others could have written to {', '.join(sorted(changed))}: look at what is in there"


def _tell(home: Path, sentences: list[str]) -> None:
    line = "; ".join(sentences)
    log.warning("%s", line)
    with open_to_append(home / RECORD) as file:
        file.write(json.dumps({"at": time.time(), "said": line}).encode() + b"\n")
