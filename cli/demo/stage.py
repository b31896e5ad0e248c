"""The demo's own home, and the commands that the demo runs in it."""

import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.machine.ports import is_free
from cli.drawing.output import flush, say
from cli.drawing.progress import progress
from cli.drawing.screens import can_move
from workflows.model.errors import RefusedError, ServiceError

SERVICE = (sys.executable, "-P", "-c", "from cli.warm.start import run; run()")
"""This installation's own command, even if another `service` is first on the PATH."""
INDENT = "    "
TRIES, PAUSE = 20, 0.2
LANES = range(10_000, 32_000, 10)
"""A range below the ephemeral ports."""
_OF_OTHERS = ("SERVICE_", "TEMPORAL_", "GIT_")


class CommandFailedError(ServiceError):
    """A command of the demo failed."""

    code = "demo_failed"


@dataclass(frozen=True)
class DemoStage:
    """The demo's own home, and a runner of commands in it."""

    home: Path
    silent: bool = False
    """True if nothing is printed, because a program reads the result."""

    @property
    def checkout(self) -> Path:
        """The path of the repository that the agents work on."""
        return self.home / "demo" / "hello"

    @property
    def environment(self) -> dict[str, str]:
        """Return an environment without variables that name another cluster or home."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(_OF_OTHERS)}
        return {**ours, "SERVICE_HOME": str(self.home), "TEMPORAL_CONFIG_FILE": os.devnull}

    def tell(self, *lines: str) -> None:
        """Print lines of the story, and flush them before a command prints its own."""
        if not self.silent:
            say(*lines)
            flush()

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show during the context what a step waits for: on a progress line on a terminal, else as an output line."""
        if not self.silent and not can_move(sys.stderr):
            self.tell(f"{INDENT}waiting for {what} …")
        with progress(f"waiting for {what}"):
            yield

    def service(self, *words: str) -> None:
        """Print a `service` command, run it, and print its output."""
        self._show(words)
        with progress(f"waiting for service {words[0]} {words[1]}"):
            output = self._run(words)
        self.tell(*(f"{INDENT}{line}" for line in output.splitlines()))

    def read(self, *words: str, waits_for: str) -> Any:
        """Print a `service` command, run it, and return its JSON output."""
        self._show(words)
        with self.waiting(waits_for):
            return self.look(*words)

    def look(self, *words: str) -> Any:
        """Run a `service` command without showing it, and return its JSON output."""
        return json.loads(self._run((*words, "--json")))

    def watch(self, *words: str) -> None:
        """Run a command that writes to the terminal itself."""
        self._show(words)
        if self.silent:
            self._run(words)
        elif (code := subprocess.run([*SERVICE, *words], env=self.environment, check=False).returncode) != 0:
            raise CommandFailedError(f"service {words[0]} {words[1]} ended with exit code {code}")

    def clear(self, runs: str = "") -> None:
        """Stop everything and remove the folder; the folder is kept if the daemon cannot be stopped.

        `runs` is the id of an open tree, which is ended first: its agents would outlive the daemon.
        """
        try:
            if runs:
                with suppress(CommandFailedError):
                    self._run(("job", "kill", runs, "--now"))
            self._run(("daemon", "stop"))
        except CommandFailedError as error:
            raise CommandFailedError(f"{self.home} stays: {error.message}", self.command_line("daemon stop")) from None
        for _ in range(TRIES):  # a process that is ending may write a last line meanwhile
            shutil.rmtree(self.home, ignore_errors=True)
            if not self.home.exists():
                return
            time.sleep(PAUSE)
        raise CommandFailedError(f"{self.home} could not be removed", f"rm -rf {shlex.quote(str(self.home))}")

    def ends_of_logs(self) -> list[str]:
        """Return the last lines of each log, which may say why something failed."""
        shown = []
        for log in sorted(self.home.glob("logs/*.log")):
            lines = log.read_text(errors="replace").splitlines()[-5:]
            shown += [f"the end of {log.name}:", *(f"{INDENT}{line[:300]}" for line in lines)]
        return shown

    def command_line(self, words: str) -> str:
        """Return a command as a person types it for this home."""
        return f"SERVICE_HOME={shlex.quote(str(self.home))} {_own_name()} {words}"

    def _show(self, words: tuple[str, ...]) -> None:
        self.tell("", f"  $ service {shlex.join(words)}")

    def _run(self, words: tuple[str, ...]) -> str:
        done = subprocess.run([*SERVICE, *words], env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            output = f"{done.stdout}{done.stderr}".strip()
            why = f"service {words[0]} {words[1]} ended with exit code {done.returncode}"
            raise CommandFailedError(f"{why}\n{output}" if output else why)
        return done.stdout


def make_stage(wanted: Path | None, *, silent: bool) -> DemoStage:
    """Make the demo's folder. Refuse a folder that is not empty, since the demo removes it at the end."""
    try:
        if wanted is None:
            wanted = Path(tempfile.mkdtemp(prefix="service-demo-"))
        elif wanted.exists() and (not wanted.is_dir() or any(wanted.iterdir())):
            why = f"{wanted} is there already, and the demo would remove it at its end"
            raise RefusedError(why, "name a folder that does not exist yet: service demo --home FOLDER")
        wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        (wanted / "config.toml").write_text(_free_ports())
        return DemoStage(wanted.resolve(), silent)
    except (OSError, ValueError) as error:
        why = f"the demo's folder cannot be made: {getattr(error, 'strerror', None) or error}"
        raise ServiceError(why, "name another one: service demo --home FOLDER") from None


def _free_ports() -> str:
    """Return settings with free ports, so that the demo runs beside a service in use and beside other demos.

    They are chosen at random: two demos started at the same moment would both take the next free ones.
    """
    for _ in range(TRIES):
        first = secrets.choice(LANES)
        if all(is_free(first + number) for number in range(2)):
            return f"[temporal]\nport = {first}\n\n[bridge]\nport = {first + 1}\n"
    return ""


def _own_name() -> str:
    """Return the command that starts this installation: `service` if the shell finds it by that name, else its path."""
    here, there = Path(sys.argv[0]).absolute(), shutil.which("service")
    if not here.is_file():
        return shlex.join(SERVICE)
    return "service" if there and Path(there).samefile(here) else shlex.quote(str(here))
