"""Closing a home that other accounts could open: its files by themselves, its secrets replaced (rulings N1, N8).

The bridge's token is replaced at once. The seal key cannot be: what is under way was sealed with it, and whoever has
read it can forge what was sealed. So no old key is believed beside a new one; the key is replaced when the daemon
starts and nothing is under way (`bridge.daemon.new_key`), and `service doctor` tells until then.
"""

import json
import logging
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from activities.runs.regular_files import appended, content_of

if TYPE_CHECKING:
    from activities.settings.home import Home

log = logging.getLogger("service.home")

TOKEN_BYTES = 32
OTHERS, WRITERS = 0o077, 0o022
_TOLD_BYTES = 256 * 1024
_CLOSED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Opened:
    """What was found open, when, and what was done."""

    at: float
    said: str


def close(home: "Home") -> None:
    """Close the home and what stands in it. What others may have read or written is told, and replaced if secret."""
    mode = stat.S_IMODE(home.root.stat().st_mode)
    if mode & OTHERS:
        home.root.chmod(0o700)
    with os.scandir(home.root) as listing:
        found = {entry.name: stat.S_IMODE(was) for entry in listing if (was := _closed(entry.path)) is not None}
    places = {each.name: each for each in (home.bridge_token, home.bridge_tokens, home.seal_key)}
    exposed = {name for name, path in places.items() if name in found or (mode & OTHERS and path.exists())}
    if not exposed and not (mode & OTHERS and home.store.exists()):
        return  # nothing of the service's was in it yet, or a file in a closed home was not closed by itself
    _tell(home, list(_done(home, mode, found, exposed)))


def every(home: "Home", since: float) -> list[Opened]:
    """What was told since then."""
    try:
        lines = content_of(home.opened, _TOLD_BYTES).splitlines()
    except OSError:
        return []
    told = (json.loads(line) for line in lines if line.endswith(b"}"))
    return [Opened(each["at"], each["said"]) for each in told if each["at"] >= since]


def _closed(path: str) -> int | None:
    """Close a file or folder of this account; its mode until now, if it was open. No link is followed."""
    found = os.lstat(path)
    if not found.st_mode & OTHERS or found.st_uid != os.geteuid():
        return None
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        return None
    try:
        descriptor = os.open(path, _CLOSED)
    except OSError:  # it is gone, or this account took itself the right to read it
        return None
    try:
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~OTHERS)
    finally:
        os.close(descriptor)
    return found.st_mode


def _done(home: "Home", mode: int, found: dict[str, int], exposed: set[str]) -> Iterator[str]:
    """Replace what is secret, and say so."""
    from activities.settings.ready import write_private

    if mode & OTHERS:
        yield f"the service home {home.root} was open to other accounts (mode {mode:o}); it is closed now"
    for name in sorted(exposed & found.keys()):
        yield f"{home.root / name} was open to other accounts (mode {found[name]:o}); it is closed now"
    if home.bridge_token.name in exposed:
        write_private(home.bridge_token, secrets.token_urlsafe(TOKEN_BYTES))
        yield "the bridge's token was replaced: programs need the new one (service bridge token)"
    if found.get(home.bridge_tokens.name, 0) & WRITERS:
        home.bridge_tokens.replace(home.bridge_tokens.with_suffix(".others"))
        yield "others could have added named tokens: none opens the bridge any more (service bridge token add NAME)"
    if home.seal_key.name in exposed:
        write_private(home.seal_key_open, f"{time.time()}\n")
        yield "the seal key is replaced when the daemon starts and nothing is under way (service doctor)"
    if changed := [name for name, was in found.items() if mode & 0o011 and was & WRITERS and name not in exposed]:
        yield f"others could have written to {', '.join(sorted(changed))}: look at what is in there"


def _tell(home: "Home", said: list[str]) -> None:
    line = "; ".join(said)
    log.warning("%s", line)
    with appended(home.opened) as file:
        file.write(json.dumps({"at": time.time(), "said": line}).encode() + b"\n")
