"""A whole service to break: the daemon with its members on a home of its own, agents that leave marks, a controller."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from activities.runs.os_processes import marks
from activities.runs.supervised_run import home_mark
from activities.settings.home import Home
from bridge.machine import daemon_state
from bridge.machine.daemon_state import DaemonState, GroupPhase
from tests import postgres
from tests.chaos import hook
from tests.chaos.controller import Controller
from tests.chaos.faults import clock
from tests.chaos.faults.disk import Disk, mounted
from tests.chaos.faults.injector import GIVEN
from tests.chaos.model import PROGRAM, Model
from tests.e2e.bridge import token
from tests.e2e.conftest import Installed, lane, set_up
from tests.e2e.programs import PROGRAMS, installed, variables
from tests.fleet import server
from tests.fleet.lines import Line, line_to
from tests.fleet.machines import kill_all_of
from tests.github.fixtures import peopled
from tests.github.hub import Hub
from tests.github.keys import private_key
from tests.guard import MARK
from tests.mcp_messages import message
from tests.postgres import Postgres
from tests.starved import can_limit
from tests.unboxed import shell
from tests.waiting import wait_for

AGENT = """\
job=$SERVICE_JOB_ID attempt=$SERVICE_ATTEMPT name=${SERVICE_DELEGATION_ID:-$SERVICE_CONTINUATION}
mark() { echo "$1 $job $attempt $name $$ $(date +%s.%N)" >> "$PLANS/marks"; }
mark begin
prompt=$PLANS/prompts/$job.$attempt.$$ of=$PLANS/of.$SERVICE_ROOT_JOB_ID
cat > "$prompt"
key=$(grep -o 'case-[0-9a-z]*' "$prompt" | head -n 1)
if [ -n "$key" ]; then echo "$key" > "$of"; else key=$(cat "$of"); fi
plan=$PLANS/$key step=$name
[ -e "$plan/$name.$attempt" ] && step=$name.$attempt
[ -e "$plan/$name.sh" ] && . "$plan/$name.sh"
[ -e "$PLANS/$job.flood" ] && . "$PLANS/$job.flood"
mark end
if [ -e "$plan/$step" ]; then answer=$(cat "$plan/$step")
else answer="{\\"service_result\\": {\\"decision\\": \\"approved\\", \\"summary\\": \\"did $name\\"}}"; fi
case "$*" in
*stream-json*)
  error=false status=null
  if [ -n "$limit" ]; then error=true status=429 answer=$limit; fi
  printf '{"type":"result","subtype":"success","is_error":%s,"api_error_status":%s,"session_id":"s-1","result":"%s",' \
    "$error" "$status" "$(printf '%s' "$answer" | sed 's/"/\\\\"/g')"
  printf '"usage":{"input_tokens":1,"output_tokens":1}}\\n'
  [ $error = false ] ;;
*) printf '%s\\n' "$answer" ;;
esac
"""
"""An agent that plays the plan of its case, which its prompt names, and marks its begin and its end. As a
`runtime_b` it answers as that program does, also of a limit.
"""

BUDGET = 10
"""The most jobs of a tree beside its root and its finalize."""
SETTINGS = f"""\
[bridge]
requests_per_minute = 1000000
[worker]
max_parallel_jobs = 24
free_disk = 0.01
[orchestrate]
merge = "line"
max_delegation_total_jobs = {BUDGET}
"""
LIMITED = """\
[runtimes.runtime_b]
box = "none"
command = {}
env = {}
rate_limit_backoff = "1s"
max_parallel = 1
"""
FIRST, SECOND = "one", "two"
"""The names of the hosts of a fleet."""
FLEET = """\
[fleet]
move_after = "20s"
"""
LOST = 45.0
"""Seconds until the jobs of a host that died have moved."""
GITHUB = """\
[github]
app_id = "4242"
installation_id = "{}"
private_key_file = "{}"
api_url = "{}"
"""
ROOM = 2 << 30
"""Bytes that /dev/shm must have free for a stack to be there."""


@dataclass(frozen=True)
class Mark:
    """A line that an agent wrote, outside of all that the service writes."""

    word: str
    job: str
    attempt: int
    name: str
    pid: int
    at: float


@dataclass(frozen=True)
class Hooked(Installed):
    """A service whose processes ask the controller at each station."""

    @property
    def environment(self) -> dict[str, str]:
        known = super().environment
        return known | {"PYTHONPATH": f"{hook.FIRST}{os.pathsep}{known['PYTHONPATH']}"}


@dataclass
class Stack:
    """One service. A fault may use all of it."""

    folder: Path
    controller: Controller
    service: Hooked = field(init=False)
    disk: Disk | None = None
    """The disk of its home."""
    lines: dict[str, Line] = field(default_factory=dict)
    """Its lines to a Temporal server and a PostgreSQL store that are not the daemon's own."""
    database: Postgres | None = None
    left: set[str] = field(default_factory=set)
    """What earlier rounds left and were blamed for."""
    github: Hub = field(default_factory=Hub)
    """The GitHub of acme/tool."""
    model: Model = field(default_factory=Model)
    """The model of a real program."""
    is_fleet: bool = False
    second: Hooked | None = field(init=False, default=None)
    """The other host of a fleet."""
    ended: bool = False
    troubled_until: float = 0.0
    """The end of the last fault, and of what it took to have all members back."""

    def __post_init__(self) -> None:
        made = set_up(self.folder)
        self.service = Hooked(made.home, made.repo, made.tmp, made.extra)
        self.plans = self.folder / "plans"
        (self.plans / "prompts").mkdir(parents=True)
        agent = self.model.agent = self.service.program("agent", AGENT)
        self.service.extra.update({"PLANS": str(self.plans), hook.CONTROLLER: str(self.controller.address)})
        limited = LIMITED.format(json.dumps(agent.split()), json.dumps(["PLANS", MARK]))
        config = shell("PLANS") + limited + SETTINGS + self._elsewhere
        if has_program := PROGRAM in installed():
            self.service.extra.update(variables(self.folder / "programs", self.model))
            config += self.model.section(MARK)
        own = _on(FIRST, config) if self.is_fleet else config + self._github()
        (self.home / "config.toml").write_text(own)
        if self.lines:
            self.service("cluster", "init")
            self.service("repo", "add", "acme/shop", str(made.repo))
        subprocess.run(["git", "clone", "-q", "--bare", str(made.repo), str(self.hub)], check=True)
        self.service("repo", "add", "acme/hub", "--remote", str(self.hub))
        tool = self.folder / "tool"
        subprocess.run(["git", "clone", "-q", str(self.hub), str(tool)], check=True)
        self.service("repo", "add", "acme/tool", str(tool), "--github", "acme/tool")
        for name in ("lead", "dev"):
            self.service.register(name, agent, "--repo", "acme/hub", "--repo", "acme/tool")
        self.service("agent", "add", "capped", "--runtime", "runtime_b", "--repo", "acme/shop", "--capabilities", "ask")
        if has_program:
            words = ("--runtime", PROGRAMS[PROGRAM], "--repo", "acme/shop", "--autonomy", "danger-full-access")
            self.service("agent", "add", "real", *words, "--capabilities", "ask,implement")
        if self.is_fleet:
            self.second = self._second_host(config)

    def _second_host(self, config: str) -> Hooked:
        """Return a host that shares all but its home with the first one."""
        folder = self.folder / SECOND
        folder.mkdir()
        made = Hooked(folder / "home", self.service.repo, folder, self.service.extra | lane())
        made.home.mkdir(mode=0o700)
        (made.home / "config.toml").write_text(_on(SECOND, config))
        shutil.copy(self.home / "seal.key", made.home)
        return made

    def crash_second(self) -> None:
        """Kill all that runs on the second host with -9, agents included."""
        assert self.second is not None, "this stack has one host"
        if state := daemon_state.status(self.second.seen.home).state:
            os.kill(state.pid, signal.SIGSTOP)  # it starts nothing again
        kill_all_of(self.second.home)
        for pid, _ in self._runs(self.second.home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.trouble(LOST)

    @property
    def hub(self) -> Path:
        """A bare repository, to which work in progress is pushed."""
        return self.folder / "hub.git"

    def _github(self) -> str:
        """Return the settings of a GitHub App."""
        peopled(self.github)
        (key := self.folder / "app.pem").write_text(private_key())
        key.chmod(0o600)
        return GITHUB.format(self.github.app(), key, self.github.address)

    @property
    def _elsewhere(self) -> str:
        """Return the settings that name a server and a store which are not the daemon's own."""
        if not self.lines:
            return ""
        url = self.postgres.database("postgres", self.lines["store"].port)
        namespace = f'namespace = "{self.folder.name}"\n' if GIVEN in os.environ else ""
        return f'[temporal]\naddress = "{self.lines["temporal"].address}"\n{namespace}[store]\nurl = "{url}"\n'

    @property
    def postgres(self) -> Postgres:
        assert self.database is not None, "this stack has SQLite"
        return self.database

    def take_over(self, server: Postgres) -> None:
        """Let the line to the store lead to another server from here on."""
        self.database, self.lines["store"].target = server, ("127.0.0.1", server.port)

    @property
    def home(self) -> Path:
        return self.service.home

    @property
    def hosts(self) -> list[Hooked]:
        return [self.service, *([self.second] if self.second else [])]

    def start(self) -> None:
        for host in self.hosts:
            host("daemon", "start")

    def stop(self) -> None:
        for host in self.hosts:
            host("daemon", "stop")

    @property
    def daemon(self) -> DaemonState | None:
        """Return what the daemon says of itself; None while it does not run: a killed one leaves what it said."""
        status = daemon_state.status(self.service.seen.home)
        return status.state if status.running else None

    def pid(self, part: str) -> int:
        """Return the pid of the daemon or of one of its members; 0 while it does not run."""
        if (state := self.daemon) is None:
            return 0
        if part == "daemon":
            return state.pid
        return next((child.pid or 0 for child in state.children if child.name == part), 0)

    def pids(self, part: str, subject: str = "") -> list[int]:
        """Return the pids of fork servers, supervisors, helpers, or agents; of one job's agents where one is given."""
        if part == "agent":
            return [pid for host in self.hosts for pid, run in self._runs(host.home) if run.startswith(subject)]
        worker = self.pid("worker")
        words = {"fork_server": b"fork_server.py", "supervisor": b"fork_server.py", "helper": b"helper_process"}
        children = [pid for pid in _all() if words[part] in _command(pid) and worker in _line(pid)]
        return [pid for pid in children if (part == "fork_server") == (_parent(pid) == worker) or part == "helper"]

    def _runs(self, home: Path) -> list[tuple[int, str]]:
        """Return the processes of a host's agents, with the names of their runs' folders."""
        ours = home_mark(Home(home).runs)
        return [(pid, mark.rpartition("@")[0]) for pid, mark in marks() if mark.endswith(f"@{ours}")]

    def trouble(self, seconds: float = 0.0) -> None:
        """Note that a fault lasts until so many seconds from now."""
        self.troubled_until = max(self.troubled_until, time.time() + seconds)

    def keep_well(self, over: threading.Event) -> None:
        """Until `over`, note for how long members are missing, and start a dead daemon again, as an init does."""
        while not over.wait(0.5) and not self.ended:
            if not self.is_well:
                self.trouble()
                if self.daemon is None:
                    self.service.run("daemon", "start")

    @property
    def able(self) -> frozenset[str]:
        """Return what faults may need that is here."""
        there = {
            "hub": True,
            "sqlite": self.database is None,
            "postgres": self.database is not None,
            "lines": bool(self.lines),
            "hosts": self.is_fleet,
            "script": True,
            "model": PROGRAM in installed(),
            "injector": GIVEN in os.environ and bool(self.lines),
            "disk": bool(self.disk or (self.database and self.database.disk)),
            "group": can_limit(),
            "faketime": bool(clock.LIBRARIES),
        }
        return frozenset(name for name, is_there in there.items() if is_there)

    @property
    def is_well(self) -> bool:
        """True if all members run."""
        state = self.daemon
        return state is not None and state.phase is GroupPhase.RUNNING and all(child.pid for child in state.children)

    def until_well(self, seconds: float = 120.0) -> None:
        wait_for(lambda: self.is_well, lambda: self.service.run("daemon", "status").stdout, seconds)

    def marks_of(self, root: str) -> list[Mark]:
        """Return what the agents of a tree wrote. A line that a killed agent did not finish is left out."""
        path = self.plans / "marks"
        lines = [line for line in path.read_text().splitlines() if f" {root}" in line] if path.exists() else []
        return [
            Mark(word, job, int(attempt), name, int(pid), float(at))
            for word, job, attempt, name, pid, at in (line.split() for line in lines if line.count(" ") == 5)
        ]

    @cached_property
    def http(self) -> httpx.Client:
        address = self.service("dashboard", "--print").stdout.split("/ui/")[0].strip()
        return httpx.Client(base_url=address, headers=token(self.service), timeout=15)

    def get(self, path: str, patience: float = 90.0) -> Any:
        """Return what the bridge answers; None if it does not for so long: a fault of another case may last."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            with contextlib.suppress(httpx.HTTPError):
                answer = self.http.get(path)
                if answer.status_code == 200:
                    return answer.json()
            time.sleep(0.3)
        return None

    def shown(self, path: str) -> Any:
        """Return what the bridge shows now; None if it does not answer soon."""
        with contextlib.suppress(httpx.HTTPError, ValueError):
            answer = self.http.get(path, timeout=2)
            return answer.json() if answer.status_code == 200 else None
        return None

    def post(
        self,
        path: str,
        body: Mapping[str, object],
        key: str,
        patience: float = 90.0,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send an order under one key until the bridge has answered it, as a careful client does, also after all faults
        are over.
        """
        began, answer = time.time(), None
        while self._has_patience(began, patience):
            with contextlib.suppress(httpx.HTTPError):
                answer = self.http.post(path, json=body, headers={"Idempotency-Key": key, **(headers or {})})
                if answer.status_code < 500 and answer.status_code != 429:
                    return answer.json()
            time.sleep(0.3)
        raise AssertionError(f"POST {path} has no answer in {patience:g} s: {answer and answer.text}")

    def form(self, job: str, content: Mapping[str, str]) -> None:
        """Follow a tree as a client of MCP does, and answer what it asks by forms, until no form is left."""

        def is_answered() -> bool:
            task = self._mcp("tools/call", name="follow", arguments={"job": job}).get("taskId", "")
            known = self._mcp("tasks/get", taskId=task) if task else {}
            if forms := known.get("inputRequests", {}):
                answers = {key: {"action": "accept", "content": dict(content)} for key in forms}
                self._mcp("tasks/update", taskId=task, inputResponses=answers)
            return bool(known) and not forms

        began = time.time()
        while not is_answered():
            assert self._has_patience(began, 90), "its form is not answered"
            time.sleep(0.3)

    def _has_patience(self, began: float, seconds: float) -> bool:
        """Return whether a client still waits for what it began: a fault of another case may last."""
        return time.time() < max(began, self.troubled_until) + seconds

    def _mcp(self, method: str, **params: Any) -> Any:
        """Send a message until it is answered. An answer that was carried out before is refused: all the same."""
        headers, body = message(method, **params)
        return self.post("/mcp", body, "", headers=headers).get("result", {})

    def end(self) -> None:
        """Let everything go on, stop the service, and kill what is left of it."""
        self.ended = True
        self.controller.release()
        self.stop()
        self.kill_all()
        if self.database is not None:  # perhaps a replica that took over
            with contextlib.suppress(subprocess.CalledProcessError):
                self.database.stop()

    def kill_all(self) -> None:
        """Kill what is left of the service and its agents."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid("daemon") or os.getpid() + (1 << 24), signal.SIGKILL)
        for pid in [pid for pid in _all() if str(self.folder).encode() in _command(pid)] + self.pids("agent"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Kind(StrEnum):
    """The kinds of stack."""

    PLAIN = "plain"
    DISK = "disk"
    """Its home is on a disk of its own, which takes root."""
    ELSEWHERE = "elsewhere"
    """Temporal server and PostgreSQL are not the daemon's own, and behind lines."""
    FLEET = "fleet"
    """Like `ELSEWHERE`, with a second host, and without GitHub."""

    @classmethod
    def that_has(cls, needs: Set[str]) -> "Kind":
        """Return the simplest kind that has what a case needs."""
        if "hosts" in needs:
            return cls.FLEET
        if needs & {"lines", "postgres", "injector"}:
            return cls.ELSEWHERE
        return cls.DISK if "disk" in needs else cls.PLAIN


@contextlib.contextmanager
def stack(kind: Kind = Kind.PLAIN) -> Iterator[Stack]:
    """Run a service during the context, in memory where there is room."""
    shm = Path("/dev/shm")
    where = shm if shm.is_dir() and shutil.disk_usage(shm).free > ROOM else Path(tempfile.gettempdir())
    with contextlib.ExitStack() as made:
        folder = Path(tempfile.mkdtemp(prefix="chaos-", dir=where))
        made.callback(shutil.rmtree, folder, ignore_errors=True)
        controller = made.enter_context(Controller(folder / "controller"))
        if kind in (Kind.ELSEWHERE, Kind.FLEET):
            disk, database = None, made.enter_context(postgres.running(100, disk=256 if os.getuid() == 0 else 0))
            given = os.environ.get(GIVEN) or made.enter_context(server.running(folder / "temporal.db")).address
            host, port = given.split(":")
            lines = {
                "temporal": made.enter_context(line_to(host, int(port))),
                "store": made.enter_context(line_to("127.0.0.1", database.port)),
            }
        else:
            disk, database, lines = (
                made.enter_context(mounted(folder / "home")) if kind is Kind.DISK else None,
                None,
                {},
            )
        hub, model = made.enter_context(Hub()), made.enter_context(Model())
        there = Stack(folder, controller, disk, lines, database, github=hub, model=model, is_fleet=kind is Kind.FLEET)
        made.callback(there.end)
        there.start()
        yield there


def _on(host: str, config: str) -> str:
    """Return the settings of a host of a fleet."""
    return config.replace("[worker]\n", f'[worker]\nhost = "{host}"\n') + FLEET


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _line(pid: int) -> list[int]:
    """Return the ancestors of a process."""
    ancestors = []
    while (pid := _parent(pid)) > 1:
        ancestors.append(pid)
    return ancestors
