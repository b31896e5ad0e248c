"""`python -m tests.chaos.neighbour VENV`: what comes of the same faults with a neighbour, cli-agent-orchestrator.

VENV has it. Its server runs Claude in terminals of tmux, which the scripted model drives. Only what its documentation
names is used. What came of each fault is written to `neighbour.json`, which the page of promises shows.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import httpx

from tests import guard
from tests.chaos.scorecard import CARD, NEIGHBOUR, of_neighbour, today
from tests.e2e.programs import installed
from tests.scripted_model import ScriptedModel
from tests.scripted_model.scenarios import Play
from tests.waiting import wait_for

PACKAGE = "cli-agent-orchestrator"
SOON = 60.0
"""Seconds in which what ought to go on goes on, or a screen says what is wrong."""
LATE = 120.0
"""Seconds in which a message arrives: the neighbour sends those that were left again after 60 s."""
DOWN = 5.0
"""Seconds until its dead server is started again."""
FROZEN = 45.0
STARTS = 600.0
REPORT = "REPORT-OF-THE-WORKER"
SERVER = "cao-mcp-server"
NOT_THERE = "No such tool available"
"""Claude's answer to a call of an MCP server that it has not connected to yet."""
WORKFLOW = """\
from cao_workflow import emit_output, run_step

first = run_step("claude_code", "developer", "[[fake:short]]", step_id="first")
second = run_step("claude_code", "developer", "[[fake:work]] after it", step_id="second")
emit_output({"first": first.output, "second": second.output})
"""
Facts = dict[str, Any]
"""Plain words with whether they came true; with `says`, the words of its own screen after the fault."""


class Neighbour:
    """Its server on a home of its own, the agents' play, and what they leave outside of it."""

    def __init__(self, venv: Path, folder: Path) -> None:
        self.folder, self.work, self.marks, self.go = folder, folder / "work", folder / "marks", folder / "go"
        self.venv = venv
        plays = {"assign": self._assign, "handoff": self._handoff, "report": self._report, "work": self._work}
        self.model = ScriptedModel(plays | {"heard": self._heard, "short": self._short})
        self.answers: dict[str, str] = {}
        """The answers of tools to agents, by tool."""
        self.first, self.server = "", subprocess.Popen("true")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        path = f"{venv / 'bin'}:{Path(installed()['claude']).parent}:{os.environ['PATH']}"
        own = {"PATH": path, "ANTHROPIC_BASE_URL": self.model.url(), "ANTHROPIC_API_KEY": "any", "IS_SANDBOX": "1"}
        own |= {"DISABLE_AUTOUPDATER": "1", "BASH_DEFAULT_TIMEOUT_MS": "600000", "MCP_TIMEOUT": "300000"}
        own |= {"CAO_PROVIDER_INIT_TIMEOUT": f"{STARTS:g}"}
        own |= {"CAO_HOME_DIR": str(folder / "cao"), "CAO_API_PORT": str(self.port), "TMUX_TMPDIR": str(folder)}
        home = folder / "home"
        self.environment = own | {"HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        self.environment |= {guard.MARK: os.environ[guard.MARK]}
        (home / ".claude").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", self.work], check=True)
        own_name = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
        subprocess.run(["git", "-C", self.work, *own_name, "commit", "-q", "--allow-empty", "-m", "begin"], check=True)
        (home / ".bash_profile").write_text("".join(f"export {name}='{own[name]}'\n" for name in own))
        key = {"approved": ["any"], "rejected": []}
        trusted = {str(self.work): {"hasTrustDialogAccepted": True, "allowedTools": []}}
        answered = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": key, "projects": trusted}
        (home / ".claude.json").write_text(json.dumps(answered))

    def start(self) -> None:
        words = [str(self.venv / "bin/cao-server"), "--port", str(self.port)]
        with (self.folder / "log").open("ab") as log:
            self.server = subprocess.Popen(words, env=self.environment, cwd=self.work, stdout=log, stderr=log)
        wait_for(lambda: "status" in self.api("GET", "/health"), seconds=STARTS)

    def api(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """Return what its server answers; the error in words if it doesn't."""
        address = f"http://127.0.0.1:{self.port}{path}"
        try:
            answer = httpx.request(method, address, json=body, params=query, timeout=STARTS)
        except httpx.HTTPError as error:
            return {"refused": str(error)}
        return {"refused": f"{answer.status_code} {answer.text}"} if answer.is_error else answer.json()

    def began(self, scenario: str) -> str:
        """Have a first agent do this, until a worker works; return the worker's terminal."""
        words = {"agent_profile": "developer", "provider": "claude_code", "session_name": "one"}
        asked = {"initial_message": f"[[fake:{scenario}]]"}
        self.first = self.api("POST", "/sessions", asked, **words, working_directory=str(self.work))["id"]
        wait_for(lambda: self.count("worker began"), seconds=STARTS)
        return next(str(one["id"]) for one in self.api("GET", "/sessions/cao-one/terminals") if one["id"] != self.first)

    def run(self) -> str:
        """Start a workflow of two steps, which a person has approved, until the second works; return its address."""
        self.api("POST", "/workflows", {"name": "two", "source": WORKFLOW})
        asked = {"name_or_path": "two", "run_id": "one", "working_directory": str(self.work)}
        refused = self.api("POST", "/workflows/runs:submit", asked)["refused"]
        plan = json.loads(refused.partition(" ")[2])["detail"]["plan_id"]
        self.api("POST", "/workflows/plans/approve", {"plan_id": plan})
        self.api("POST", "/workflows/runs:submit", asked)
        wait_for(lambda: self.count("worker began"), seconds=STARTS)
        return "/workflows/runs/one"

    def count(self, mark: str) -> int:
        return self.marks.read_text().splitlines().count(mark) if self.marks.exists() else 0

    def soon(self, what: Callable[[], object], seconds: float = SOON) -> bool:
        with suppress(AssertionError):
            wait_for(what, seconds=seconds)
        return bool(what())

    def looks(self, path: str, seconds: float = SOON) -> list[str]:
        """Return what it says of a terminal or a run for a while, without repetitions."""
        seen: list[str] = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answer = self.api("GET", path)
            word = str(answer.get("status") or answer.get("state") or answer["refused"][:3])
            seen += [word] if seen[-1:] != [word] else []
            time.sleep(2)
        return seen

    def pids(self, variable: str, program: str = "") -> list[int]:
        """Return the processes with this variable: all of them, or those of one program."""
        pids = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                runs = (process / "cmdline").read_bytes().split(b"\0")[0].decode()
                if variable.encode() in (process / "environ").read_bytes().split(b"\0") and program in (
                    "",
                    Path(runs).name,
                ):
                    pids.append(int(process.name))
        return pids

    def agents(self, terminal: str) -> list[int]:
        return self.pids(f"CAO_TERMINAL_ID={terminal}", "claude")

    def send(self, number: signal.Signals, pids: Sequence[int]) -> None:
        assert pids, "there is nobody"
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_server(self) -> None:
        self.server.kill()
        self.server.wait()

    def kill_all(self) -> None:
        while pids := self.pids(f"CAO_HOME_DIR={self.folder / 'cao'}"):
            self.send(signal.SIGKILL, pids)
            self.server.wait()

    def restart(self) -> None:
        time.sleep(DOWN)
        self.start()

    def facts(self, worker: str, tool: str) -> Facts:
        """Let the worker finish, and return what came of it."""
        self.go.touch()
        pids = self.agents(worker)
        self.soon(lambda: not pids or (tool in self.answers and self.count("worker ended")), 4 * SOON)
        answer, seconds = self.answers.get(tool, ""), LATE if tool in self.answers else 0
        arrives = self.soon(lambda: self.count("lead heard") or REPORT in self.answers.get("handoff", ""), seconds)
        inbox = self.api("GET", f"/terminals/{self.first}/inbox/messages")
        failed = {"the tool that was cut off says so": True} if '"success":false' in answer else {}
        return failed | {
            "the agent ends its work": bool(pids and self.count("worker ended")),
            "it runs once": self.count("worker began") == 1,
            "its file is kept": (self.work / "half").exists(),
            "its report arrives": arrives,
            "`cao agent result` shows the report": self.soon(lambda: self.shown(worker), SOON / 4),
            "answer": answer.replace(str(self.folder), "")[:300],
            "messages": [one["status"] for one in inbox] if isinstance(inbox, list) else [],
        }

    def shown(self, worker: str) -> bool:
        return REPORT in str(self.api("GET", f"/terminals/{worker}/output", mode="last"))

    def _connected(self, tool: str, **given: str) -> Play:
        """Call a tool of the neighbour's, as soon as Claude has connected to it."""
        call = {"mcp": {"server": SERVER, "name": tool, "input": given}}
        while NOT_THERE in (answer := (yield call)):
            yield {"run": "sleep 2"}
        self.answers[tool] = answer

    def _assign(self, _: str) -> Play:
        yield from self._connected("assign", agent_profile="developer", message="[[fake:report]]")
        yield {"text": "assigned"}

    def _handoff(self, _: str) -> Play:
        yield from self._connected("handoff", agent_profile="developer", message="[[fake:work]]")
        yield {"text": "handed off"}

    def _heard(self, _: str) -> Play:
        yield {"run": f"echo lead heard >> {self.marks}"}
        yield {"text": "heard"}

    def _short(self, _: str) -> Play:
        yield {"run": f"echo first began >> {self.marks}"}
        yield {"text": "the first is done"}

    def _work(self, _: str) -> Play:
        wait = f"while [ ! -e {self.go} ]; do sleep 0.2; done"
        yield {"run": f"echo worker began >> {self.marks}; echo half > half; {wait}; echo worker ended >> {self.marks}"}
        yield {"text": REPORT}

    def _report(self, prompt: str) -> Play:
        yield next(self._work(prompt))
        yield from self._connected("send_message", message=f"[[fake:heard]] {REPORT}")
        yield {"text": REPORT}


def server_dies(there: Neighbour, worker: str) -> None:
    there.kill_server()
    there.restart()


def agent_dies(there: Neighbour, worker: str) -> None:
    there.send(signal.SIGKILL, there.agents(worker))


def agent_freezes(there: Neighbour, worker: str) -> None:
    pids = there.agents(worker)
    there.send(signal.SIGSTOP, pids)
    Timer(FROZEN, there.send, (signal.SIGCONT, pids)).start()


def all_dies(there: Neighbour, worker: str) -> None:
    there.kill_all()
    there.restart()


def report_cut(there: Neighbour, worker: str) -> None:
    there.kill_server()
    there.go.touch()
    wait_for(lambda: "send_message" in there.answers, seconds=STARTS)
    there.restart()


def handed(strike: Callable[[Neighbour, str], None], how: str = "assign") -> Callable[[Neighbour], Facts]:
    """Return the play of a fault that strikes while a worker works, to whom another agent has given its work."""

    def play(there: Neighbour) -> Facts:
        worker = there.began(how)
        strike(there, worker)
        seen = there.looks(f"/terminals/{worker}")
        return {"says": seen} | there.facts(worker, "handoff" if how == "handoff" else "send_message")

    return play


def run_dies(there: Neighbour) -> Facts:
    run = there.run()
    there.kill_all()
    there.restart()
    seen = there.looks(run)
    there.go.touch()
    halted = there.api("POST", f"{run}/resume")
    resumed = there.api("POST", f"{run}/resume", {"decisions": {"second": "rerun"}})
    return {
        "says": seen,
        "`cao workflow resume` ends it": REPORT in str(halted),
        "with `--decide second=rerun` it ends": REPORT in str(resumed),
        "the step that had ended runs once": there.count("first began") == 1,
        "the step that was cut runs again": there.count("worker began") == 2,
        "its file is kept": (there.work / "half").exists(),
    }


STARTED_AGAIN = "tasks go on after `service daemon start`: asks run again, an implement job fails and keeps its work"
RESTARTED = ("kill server", "kill worker", "kill bridge")
FAULTS: dict[str, tuple[Callable[[Neighbour], Facts], str, str, tuple[str, ...]]] = {
    "its server dies while an agent works": (
        *(handed(server_dies), "the daemon starts it again, agents run on, their reports arrive"),
        *("", RESTARTED),
    ),
    "an agent dies while it works": (
        *(handed(agent_dies), "the job fails and says why, with `retry` it runs again; its work is kept"),
        *("", ("kill agent", "kill supervisor")),
    ),
    "an agent is stopped for 45 s": (
        *(handed(agent_freezes), "it goes on when it is woken; `service job show` says when it last printed what"),
        *("", ("freeze agent",)),
    ),
    "all of it dies, as with its host": (handed(all_dies), STARTED_AGAIN, "", ("kill the host",)),
    "all of it dies in a workflow's second step": (run_dies, STARTED_AGAIN, "", ("kill the host",)),
    "its server is dead as a worker reports": (
        *(handed(report_cut), "the end is kept in the run's folder, and the next worker reads it"),
        *("report sent", RESTARTED),
    ),
    "its server dies while an agent waits for a handoff": (
        *(handed(server_dies, "handoff"), "nobody waits in a process: who delegated is continued with the results"),
        *("rows", RESTARTED),
    ),
}
"""Faults by name: the play, what holds here, and the station and the faults of the cases that show it."""


def play(venv: Path, name: str) -> Facts:
    with TemporaryDirectory(prefix="neighbour-") as folder:
        there = Neighbour(venv, Path(folder))
        with there.model:
            try:
                there.start()
                facts = FAULTS[name][0](there)
            except (AssertionError, LookupError) as error:
                facts = {"not played": f"{error!r}"[:300]}
            finally:
                there.kill_all()
    print(name, json.dumps(facts), flush=True)
    return facts


def version(venv: Path) -> str:
    script = f"import importlib.metadata as m; print(m.version({PACKAGE!r}))"
    return subprocess.run(
        [venv / "bin/python", "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    guard.begin()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.neighbour", description=__doc__)
    parser.add_argument("venv", type=Path, help=f"an environment with {PACKAGE}")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--beside", type=int, default=3, help="how many are played at once")
    parser.add_argument("--add", action="store_true", help="keep the plays of before")
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=list(FAULTS))
    asked = parser.parse_args()
    known = json.loads(NEIGHBOUR.read_text())["faults"] if asked.add else {}
    plays = {name: known.get(name, {"plays": []})["plays"] for name in FAULTS}
    names = [name for _ in range(asked.times) for name in asked.faults]
    with ThreadPoolExecutor(asked.beside) as threads:
        for name, facts in zip(names, threads.map(lambda name: play(asked.venv.resolve(), name), names), strict=True):
            plays[name].append(facts)
    versions = {PACKAGE: version(asked.venv), "claude": Path(installed()["claude"]).parent.name.split("-")[-1]}
    keys = ("here", "station", "ours")
    faults = {name: {"plays": plays[name]} | dict(zip(keys, FAULTS[name][1:], strict=True)) for name in FAULTS}
    report = {"date": today(), "versions": versions, "faults": faults}
    NEIGHBOUR.write_text(json.dumps(report, indent=1) + "\n")
    print(of_neighbour(report, json.loads(CARD.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
