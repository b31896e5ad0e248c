"""The service with the agents' real programs, each using a scripted model on this machine."""

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.runs.os_processes import marks
from tests.e2e.conftest import Installed
from tests.e2e.programs import PROGRAMS, available, sections, variables
from tests.scripted_model import ScriptedModel


@dataclass(frozen=True)
class Ended:
    """An ended job, and its program's requests to the model."""

    job: dict[str, Any]
    requests: list[dict[str, Any]]

    @property
    def state(self) -> str:
        return str(self.job["state"])

    @property
    def tokens(self) -> tuple[int, int]:
        return self.job["usage"]["input_tokens"], self.job["usage"]["output_tokens"]


class Stage:
    """The service of a module."""

    def __init__(self, service: Installed, model: ScriptedModel) -> None:
        self.service, self.model = service, model
        self._pool = ThreadPoolExecutor(max_workers=2 * len(PROGRAMS))
        self._played: dict[tuple[Play, str], Future[Any]] = {}

    def set_up(self) -> None:
        """Start the service, and register an agent for each program and each kind of permission."""
        all_actions, reading = "ask,review,implement", "ask,review"
        kinds = {
            "": (all_actions, "workspace-write", "fresh"),
            "-free": (all_actions, "danger-full-access", "fresh"),
            "-reader": (reading, "read-only", "fresh"),
            "-kept": (reading, "read-only", "tree"),
        }
        commands: list[tuple[str, ...]] = [("daemon", "start")]
        for program in available():
            for kind, (capabilities, policy, session) in kinds.items():
                words = ("--runtime", PROGRAMS[program], "--capabilities", capabilities, "--autonomy", policy)
                add = ("agent", "add", f"{program}{kind}-dev", "--repo", "acme/shop", "--session", session)
                commands.append((*add, *words))
        list(self._pool.map(lambda words: self.service(*words), commands))

    def begin(self, plays: Iterable["Play"]) -> None:
        """Start plays of all programs in parallel: most of a play is waiting."""
        for play in plays:
            for program in available():
                self._played[play, program] = self._pool.submit(play, self, program)

    def played(self, play: "Play", program: str) -> Any:
        """Return the outcome of a started play."""
        return self._played[play, program].result()

    def close(self) -> None:
        """Finish running plays and cancel the others, before the service stops."""
        self._pool.shutdown(cancel_futures=True)

    def start(self, program: str, action: str, scenario: str, *options: str) -> str:
        """Start a job of a program's agent, with a scenario for the model."""
        return str(json.loads(self._order(program, action, scenario, *options))["job_id"])

    def run(self, program: str, action: str, scenario: str, *options: str) -> Ended:
        """Run a job of a program's agent to its end."""
        job = json.loads(self._order(program, action, scenario, "--wait", *options))
        return Ended(job, self.requests(job["job_id"]))

    def _order(self, program: str, action: str, scenario: str, *options: str) -> str:
        words = ("agent", action, f"{program}-dev", f"Do it. [[fake:{scenario}]]", "--repo", "acme/shop", "--json")
        return self.service.run(*words, *options).stdout

    def end(self, job: str) -> Ended:
        """Wait for the end of a job's tree, and return the job."""
        self.tree(job)
        return self.ended(job)

    def tree(self, job: str) -> dict[str, Any]:
        """Wait for the end of a tree, and return it."""
        self.service.wait_for(lambda: bool(self.service.tree(job)["over"]))
        return self.service.tree(job)

    def ended(self, job: str) -> Ended:
        """Return an ended job."""
        return Ended(self.service.json("job", "show", job), self.requests(job))

    def requests(self, job: str) -> list[dict[str, Any]]:
        """Return the model's requests from a job's worktree."""
        return [one for one in self.model.requests() if f"{job}-" in one.get("cwd", "")]

    def processes(self, job: str) -> dict[int, str]:
        """Return every living process of a job: pid and command line."""
        commands = {}
        for pid, mark in marks():
            if mark.startswith(f"{job}."):
                with contextlib.suppress(OSError):  # it ended meanwhile
                    commands[pid] = (
                        Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    )
        return commands

    def leader(self, job: str) -> int | None:
        """Return the job's program: its oldest session leader, by start time because pids wrap around."""
        leaders = []
        for pid in self.processes(job):
            with contextlib.suppress(OSError):  # it ended meanwhile
                if os.getsid(pid) == pid:
                    leaders.append((int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]), pid))
        return min(leaders)[1] if leaders else None


Play = Callable[[Stage, str], Any]
"""A program's actions on a stage; tests check its outcome."""


def git(repo: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(repo), *words], check=True, capture_output=True, text=True).stdout


def result(**more: Any) -> dict[str, Any]:
    """Return a step that answers with a result."""
    return {"result": {"decision": "approved", "summary": "done"} | more}


def running(words: str) -> list[Path]:
    """Return every process of this machine whose command line contains these words."""
    paths = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        path = Path("/proc") / pid / "cmdline"
        with contextlib.suppress(OSError):  # it ended meanwhile
            if words in path.read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                paths.append(path)
    return paths


def configure(service: Installed, model: ScriptedModel) -> None:
    """Write settings of the real programs; each has a folder of its own, one model, and retries disabled."""
    service.extra.update(variables(service.home.parent / "programs", model))
    service.home.joinpath("config.toml").write_text(sections(model))
