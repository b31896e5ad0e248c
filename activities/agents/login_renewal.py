"""Renewal of the operator's login before it expires, by the operator's own program (ruling N2).

Jobs can't renew the login: they lack the token. The program runs as if the operator started it by hand, with the
operator's account and folder, outside any box. Its command line, folder and input have no content from agents.
"""

import contextlib
import fcntl
import logging
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.runtimes.programs import RENEWAL_FILE, Program, Renewal, find, login_expires

log = logging.getLogger(__name__)

MARGIN = 240.0
"""A login is renewed once it expires within this many seconds. The programs renew theirs in the last five minutes."""
SECONDS = 120.0
"""Time limit of the call. A program that is killed while it renews may lose the login, so the limit is generous."""
AT_FIRST, AT_MOST = 300.0, 21_600.0
"""Bounds of the exponential backoff after a failure."""

_QUIET = ("DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "KIMI_CODE_NO_AUTO_UPDATE")


@dataclass
class _FailedRenewal:
    """A failed renewal, and the expiry time of the login it was for."""

    expires: float
    wait: float
    until: float


_failures: dict[Path, _FailedRenewal] = {}
"""Failures of this process, by the operator's folder."""


@dataclass(frozen=True)
class LoginRenewal:
    """The renewal of one program's login."""

    program: Program
    command: Sequence[str]
    environ: Mapping[str, str]

    def run(self) -> None:
        """Renew the login if that is due. Concurrent callers, of all processes, wait for one renewal."""
        if self._is_due():
            self._run(fcntl.LOCK_EX)

    def run_in_background(self) -> None:
        """Renew the login in a thread if it is due and no other process is renewing it."""
        if self._is_due():
            threading.Thread(target=self._run, args=(fcntl.LOCK_EX | fcntl.LOCK_NB,), daemon=True).start()

    @property
    def _folder(self) -> Path:
        return self.program.home(self.environ)

    def _is_due(self) -> bool:
        expires = login_expires(self.program, self.environ)
        if expires is None or expires - time.time() > MARGIN:
            return False
        failure = _failures.get(self._folder)
        if failure is not None and failure.expires == expires and failure.until > time.monotonic():
            return False
        return find(self.program, self.command, self.environ) is not None

    def _run(self, how: int) -> None:
        with contextlib.suppress(OSError), _lock(self._folder, how):
            if self._is_due() and self.program.renewal:
                self._renew(self.program.renewal)

    def _renew(self, renewal: Renewal) -> None:
        before = login_expires(self.program, self.environ) or 0.0
        status = None
        with contextlib.suppress(OSError):
            status = self._call(renewal)
        asked = " by asking it for one word" if renewal.asks else ""
        if (login_expires(self.program, self.environ) or 0.0) > before:
            log.info("renewed the login of %s%s", self.program.name, asked)
            return
        failure = _failures.get(self._folder)
        wait = min(failure.wait * 2, AT_MOST) if failure and failure.expires == before else AT_FIRST
        if renewal.asks and status == 0:
            wait = float("inf")  # it answered, so another login is in use: one word for each expiry
        _failures[self._folder] = _FailedRenewal(before, wait, time.monotonic() + wait)
        how = "did not run to its end" if status is None else f"ended with status {status}"
        log.warning("the login of %s was not renewed: %s %s", self.program.name, " ".join(renewal.arguments), how)

    def _call(self, renewal: Renewal) -> int | None:
        """Run the program and discard its output. Return its exit status; None if it had to be killed."""
        with tempfile.TemporaryDirectory(prefix="login-", ignore_cleanup_errors=True) as folder:
            Path(folder, RENEWAL_FILE).write_text(renewal.text)
            with open(Path(folder, RENEWAL_FILE), "rb") as given:
                process = subprocess.Popen(
                    [*self.command, *renewal.arguments],
                    cwd=folder,
                    env={**self.environ, **dict.fromkeys(_QUIET, "1")},
                    stdin=given,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            try:
                return process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None


@contextlib.contextmanager
def _lock(folder: Path, how: int) -> Iterator[None]:
    """Lock the operator's folder itself, so that no lock file is needed in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)
