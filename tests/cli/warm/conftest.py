"""A warm process on a home of its own, and two ways to type: only through it, or as `service` does."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[3]
NOT_TAKEN = 70
"""The exit code of `ONLY_HANDED` if the command was not accepted."""
ONLY_HANDED = (
    "import os, sys; from cli.warm import client; client.PATIENCE = 300; code = client.hand_over(sys.argv); "
    f"os._exit({NOT_TAKEN} if code is None else code)"
)
AS_TYPED = "from cli.warm.start import run; run()"
FRESH = "from cli.main import run; run()"


@dataclass
class Warm:
    """A home, its warm process, and the commands typed there."""

    home: Path
    folder: Path
    extra: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: each for name, each in os.environ.items() if not name.startswith(("SERVICE_", "TEMPORAL_"))}
        nobody = {"SERVICE_TEMPORAL_PORT": "1"}  # another server may answer at the usual port
        return {**kept, **nobody, "SERVICE_HOME": str(self.home), "PYTHONPATH": str(ROOT), **self.extra}

    @property
    def socket(self) -> Path:
        return self.home / "commands.sock"

    def start(self, become: Sequence[str] = ()) -> None:
        self.socket.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [*become, sys.executable, "-P", "-m", "cli.warm", "now"],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            cwd=self.home,
        )
        wait_for(self.socket.exists, "the warm process to listen")

    def end(self, number: int = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()

    def command(self, words: Sequence[str], entry: str = ONLY_HANDED) -> list[str]:
        return [sys.executable, "-c", entry, *words]

    def begun(self, *words: str, entry: str = ONLY_HANDED, **how: object) -> "subprocess.Popen[str]":
        """Start a command without waiting for it."""
        streams = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr") if name not in how}
        given = {"env": self.environment, "cwd": self.folder, "text": True, **streams, **how}
        return subprocess.Popen(self.command(words, entry), **given)  # type: ignore[call-overload,no-any-return]

    def type(self, *words: str, entry: str = ONLY_HANDED, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command and return its result."""
        with self.begun(*words, entry=entry) as process:
            out, err = process.communicate(given, timeout=PATIENCE)
            return subprocess.CompletedProcess(words, process.returncode, out, err)


def prepared(folder: Path) -> Warm:
    """Create a home with a repository and an agent, and start its warm process."""
    warm = Warm(folder / "home", folder)
    warm.home.mkdir()
    subprocess.run(["git", "init", "-q", str(folder / "shop")], check=True)
    warm.start()
    agent = ("agent", "add", "scout", "--runtime", "shell", "--command", "true", "--repo", "acme/shop")
    for words in (("repo", "add", "acme/shop", str(folder / "shop")), agent):
        done = warm.type(*words)
        assert done.returncode == 0, done
    return warm


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """Share one warm process among tests that leave it intact."""
    warm = prepared(tmp_path_factory.mktemp("warm"))
    try:
        yield warm
    finally:
        warm.end()


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Warm]:
    """Start a warm process for a test that harms it."""
    own = Warm(tmp_path / "home", tmp_path)
    own.home.mkdir()
    own.start()
    try:
        yield own
    finally:
        own.end()
