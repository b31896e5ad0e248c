"""The README's pictures, from a real run: `tree.svg` moves, `terminal.svg` and the pages stand still.

The agents are the demo's, which need no model, slowed down so that each state is seen; and one that asks people.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import terminal_svg
from playwright.sync_api import Page

from bridge.machine import dashboard_link
from tests.e2e.browser import PROGRAM, started
from tests.waiting import wait_for

HERE = Path(__file__).parent
ROOT = HERE.parent
OUT = ROOT / ".github" / "pictures"
AGENTS = next(path for path in (ROOT / "cli/demo/agents.py", HERE / "demo_agent.py") if path.exists())
REPO, PERSON, HOST = "demo/hello", "ann@laptop", "laptop"
COLUMNS, ROWS = 124, 13
PACE = 1.5
SHORTEST, LONGEST = 0.9, 2.5
"""For how long a screen of the moving picture stands, in seconds."""
LARGEST = 300_000
ASKING = """\
import json, os, sys
prompt = sys.stdin.read()
asks = {"decision": "approved", "summary": "One decision is needed before anything is built.", "human_questions": [
    {"id": "store", "prompt": "Where should the counters be kept?", "choices": ["redis", "postgres"]}]}
done = {"decision": "approved", "summary": "The counters are kept where you said."}
print(json.dumps({"service_result": asks if os.environ["SERVICE_CONTINUATION"] == "none" else done}))
"""
SERVICE = Path(sys.executable).with_name("service")


class Stage:
    """A service of the pictures' own, in a folder that is removed."""

    def __init__(self, folder: Path) -> None:
        self.home, self.agents, self.checkout = folder / "home", folder / "agents", folder / "hello"
        left = {k: v for k, v in os.environ.items() if not k.startswith(("TEMPORAL_", "SERVICE_", "GIT_", "TMUX"))}
        self.environment = {**left, "SERVICE_HOME": str(self.home), "TEMPORAL_CONFIG_FILE": os.devnull}
        self.environment |= {"PATH": f"{SERVICE.parent}:{left['PATH']}", "LC_ALL": "C.UTF-8", "PAGER": "cat"}
        self.environment.pop("NO_COLOR", None)

    def run(self, *words: str) -> str:
        done = subprocess.run([SERVICE, *words], env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"error: service {shlex.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def begin(self) -> None:
        """A daemon, a repository, a team."""
        from activities.boxes import machine
        from activities.settings.model import Settings

        self.home.mkdir(mode=0o700)
        boxed = machine.look(Settings().worker.agents_uid).best is not None
        (self.home / "config.toml").write_text(
            f'[worker]\nhost = "{HOST}"\n' + ("" if boxed else '[runtimes.shell]\nbox = "none"\n')
        )
        self.run("daemon", "start")
        self._repository()
        self.agents.mkdir()
        slow = f"import time\ntime.sleep({PACE})\n"
        (self.agents / "demo.py").write_text(slow + AGENTS.read_text())
        (self.agents / "asking.py").write_text(ASKING)
        write = ("--capabilities", "implement", "--autonomy", "workspace-write")
        for name, script, able in (
            ("lead", "demo", ()),
            ("builder", "demo", write),
            ("checker", "demo", ()),
            ("planner", "asking", ()),
        ):
            command = shlex.join([sys.executable, str(self.agents / f"{script}.py"), "0"])
            self.run("agent", "add", name, "--runtime", "shell", "--command", command, "--repo", REPO, *able)

    def _repository(self) -> None:
        git = ("git", "-c", "user.name=Demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false")
        self.checkout.mkdir()
        (self.checkout / "hello.py").write_text('print("hello")\n')
        for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "Say hello")):
            subprocess.run([*git, *words], cwd=self.checkout, check=True)
        self.run("repo", "add", REPO, str(self.checkout))

    def ask(self, agent: str, goal: str) -> str:
        started = json.loads(self.run("agent", "ask", agent, goal, "--repo", REPO, "--json"))
        return str(started["job_id"])

    def state(self, job: str) -> str:
        return str(json.loads(self.run("job", "tree", job, "--json"))["task"]["state"])


@contextmanager
def terminal(stage: Stage, rows: int) -> Iterator["Terminal"]:
    """A terminal that nobody sees, of a tmux of our own."""
    it = Terminal(stage, rows)
    try:
        yield it
    finally:
        it.tmux("kill-server")


class Terminal:
    """A shell in the checkout, and what it shows."""

    def __init__(self, stage: Stage, rows: int) -> None:
        self.stage, self.socket = stage, str(stage.home.parent / "tmux")
        size = ("-x", str(COLUMNS), "-y", str(rows))
        rc = stage.agents / "bashrc"
        rc.write_text("PS1='$ '\n")
        shell = f"env TERM=screen-256color COLORTERM=truecolor bash --noprofile --rcfile {shlex.quote(str(rc))} -i"
        self.tmux("-f", os.devnull, "new-session", "-d", *size, "-c", str(stage.checkout), shell)
        self.tmux("set", "-g", "status", "off")
        wait_for(self.prompts)

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", self.socket, *words]
        return subprocess.run(command, env=self.stage.environment, capture_output=True, text=True).stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def is_idle(self) -> bool:
        """Whether the shell waits for a command."""
        return self.tmux("display-message", "-p", "#{pane_current_command}").strip() == "bash"

    def prompts(self) -> int:
        """How many there are on the screen."""
        return sum(line.startswith("$") for line in self.tmux("capture-pane", "-p").split("\n"))

    def screen(self) -> list[str]:
        """Its lines, with their colours."""
        return self.tmux("capture-pane", "-p", "-e").rstrip("\n").split("\n")


def moving(stage: Stage, job: str) -> tuple[list[list[str]], list[float]]:
    """Each screen of the live view until the tree is over, and for how long it stood."""
    screens: list[list[str]] = []
    times: list[float] = []
    with terminal(stage, ROWS) as shell:
        shell.type(f"clear; service job tree {job} --watch")
        wait_for(lambda: not shell.is_idle())
        over = False
        while not over:
            over = shell.is_idle() and shell.prompts() > 0  # between its two commands the shell is idle too
            screen = [line for line in shell.screen() if not line.startswith("$")]
            if any("task-" in line for line in screen) and (not screens or screen != screens[-1]):
                screens.append(screen)
                times.append(time.monotonic())
            time.sleep(0.05)
    stood = (min(LONGEST, max(SHORTEST, b - a)) for a, b in pairwise(times))
    return screens, [*stood, terminal_svg.LAST]


def still(stage: Stage, commands: Sequence[str], rows: int) -> list[str]:
    """What a terminal shows after these commands."""
    with terminal(stage, rows) as shell:
        for number, command in enumerate(["clear", *commands]):
            shell.type(command)
            wait_for(lambda at=number: shell.is_idle() and shell.prompts() > at)
        lines = shell.screen()[:-1]
    return [line for at, line in enumerate(lines) if at or line.strip()]


def without_clock(screens: list[list[str]], seconds: list[float]) -> tuple[list[list[str]], list[float]]:
    """Screens in which nothing but the clock went on are one."""
    kept: list[list[str]] = []
    stood: list[float] = []
    for screen, long in zip(screens, seconds, strict=True):
        if kept and _lines(kept[-1]) == _lines(screen):
            kept[-1] = screen
            stood[-1] = max(stood[-1], long)
        else:
            kept.append(screen)
            stood.append(long)
    return kept, stood


def _lines(screen: list[str]) -> list[str]:
    return [line for line in screen if " time " not in line]


def says_nothing_of_this_machine(name: str, text: str) -> None:
    """Neither its name, nor a folder of it."""
    for private in (socket.gethostname(), str(ROOT), str(Path.home()), tempfile.gettempdir()):
        if re.search(rf"(?<!\w){re.escape(private)}(?!\w)", text):
            sys.exit(f"error: {name} shows {private}")


def keep(name: str, content: bytes) -> None:
    """Write a picture, if it is small."""
    if len(content) > LARGEST:
        sys.exit(f"error: {name} has {len(content)} bytes, and may have {LARGEST}")
    (OUT / name).write_bytes(content)
    print(f"{OUT / name}: {len(content):,} bytes")


def draw(name: str, screens: Sequence[Sequence[str]], seconds: Sequence[float], title: str) -> None:
    """A terminal."""
    text = terminal_svg.picture(screens, seconds, title, COLUMNS)
    says_nothing_of_this_machine(name, text)
    keep(name, text.encode())


def shot(page: Page, name: str, height: int) -> None:
    """A page as it is seen."""
    says_nothing_of_this_machine(name, page.inner_text("body"))
    keep(name, _smaller(page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": height})))


def _smaller(png: bytes) -> bytes:
    """With 128 colours, where ImageMagick is installed."""
    command = ["convert", "png:-", "-colors", "128", "-define", "png:compression-level=9", "png8:-"]
    if shutil.which("convert") is None:
        return png
    done = subprocess.run(command, input=png, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 and 0 < len(done.stdout) < len(png) else png


def pages(stage: Stage, job: str) -> None:
    """The dashboard and Temporal's web UI, in a browser."""
    from activities.settings.home import Home

    status = json.loads(stage.run("daemon", "status", "--json"))["state"]
    with started() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
        page = context.new_page()
        code = dashboard_link.make(Home(stage.home), PERSON)
        page.goto(f"{status['bridge_url']}/ui/enter?code={code}&to=/ui/trees/{job}")
        page.wait_for_selector("[role=treegrid]")
        shot(page, "dashboard.png", 760)
        page.goto(f"{status['ui_url']}/namespaces/{status['namespace']}/workflows")
        page.wait_for_selector(f"text={job}")
        page.wait_for_timeout(1500)
        shot(page, "temporal.png", 620)


def main() -> None:
    """All of it, and nothing left behind."""
    global OUT
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not PROGRAM:
        sys.exit("error: no Chromium here: chromium, chromium-browser or google-chrome")
    OUT = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else OUT
    OUT.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="service-pictures-"))
    stage = Stage(folder)
    try:
        stage.begin()
        job = stage.ask("lead", "Build a rate limiter, and have it verified.")
        screens, seconds = without_clock(*moving(stage, job))
        draw("tree.svg", screens, seconds, "service job tree JOB --watch")
        asking = stage.ask("planner", "Add a limit for each customer.")
        wait_for(lambda: stage.state(asking) == "awaiting_human")
        pages(stage, job)
        commands = ["service attention", f"service job diff {job}.5"]
        draw("terminal.svg", [still(stage, commands, 40)], [1], "what waits for you, and what a job changed")
    finally:
        subprocess.run([SERVICE, "daemon", "stop"], env=stage.environment, check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
