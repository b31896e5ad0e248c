"""A machine with only those agent programs installed and logged in that a test asks for."""

import os
from pathlib import Path

import pytest

from activities.runtimes.known_runtimes import PROGRAMS

LOGINS = {"codex": ".codex/auth.json", "claude": ".claude/.credentials.json", "kimi": ".kimi-code/credentials/own"}


class Machine:
    """A PATH and a user's home below a folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._programs, self._user = folder / "bin", folder / "user"
        for path in (self._programs, self._user):
            path.mkdir()
        for program in PROGRAMS.values():
            for name in program.passes:
                monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", os.pathsep.join((str(self._programs), "/usr/bin", "/bin")))
        monkeypatch.setenv("HOME", str(self._user))

    def install(self, *names: str, logged_in: bool = True) -> None:
        """Install programs that only print their version."""
        for name in names:
            program = self._programs / name
            program.write_text(f"#!/bin/sh\necho {'.'.join(map(str, PROGRAMS[name].minimum))}\n")
            program.chmod(0o700)
            login = self._user / LOGINS[name]
            login.parent.mkdir(parents=True, exist_ok=True)
            login.write_text("{}") if logged_in else login.unlink(missing_ok=True)
