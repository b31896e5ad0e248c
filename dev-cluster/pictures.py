"""The README's pictures, from a real run: `session.svg` and `claude.svg` are recordings, the others stand still.

The agents are the demo's, which need no model, slowed down so that each state is seen; and one that asks people.
Claude is the real program of `dev-cluster/agents`, with a scripted model.
"""

import io
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from playwright.sync_api import Page
from rich.console import Console
from rich.text import Text

from bridge.machine import dashboard_link
from cli.demo import agents, story
from cli.demo.stage import DemoStage
from tests.e2e.browser import PROGRAM, started
from tests.e2e.claude_terminal import ASKS, FOLLOWS, answer_first_questions
from tests.e2e.mcp_clients import Play
from tests.e2e.programs import installed, variables
from tests.scripted_model import ScriptedModel
from tests.waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[1]
OUT = ROOT / ".github" / "pictures"
PERSON, HOST = "ann@laptop", "laptop"
COLUMNS, ROWS = 124, 26
PACE = 1.5
SHORTEST, LONGEST, LAST, READERS_TIME = 0.5, 2.0, 3.0, 20.0
"""For how long a screen of the recording stands, the last one, and all of them, in seconds."""
KEYS, KEYS_STAND = 12, 0.12
"""So many characters are typed at once in the recording, and stand so many seconds."""
_PARTS = "{width} {height} {terminal_x} {terminal_y}\0{chrome}\0{styles}\0{matrix}"
_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>{title}</title>
<style>
text{{font:20px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace}}
{styles}
@media (prefers-reduced-motion:reduce){{g{{animation:none!important}}}}
</style>
{chrome}
<g transform="translate({x},{y})">
{frames}
</g>
</svg>
"""
LARGEST = 300_000
CHOSEN = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
"""Claude's mark at what is chosen."""

WISH = "Have the team build a rate limiter."
ASKING = """\
import json, os, pathlib, sys, time
prompt, hold = sys.stdin.read(), pathlib.Path(__file__).with_name("told") / "hold"
asks = {"decision": "approved", "summary": "One decision is needed before anything is built.", "human_questions": [
    {"id": "store", "prompt": "Where should the counters be kept?", "choices": ["redis", "postgres"]}]}
part = {"id": "limiter-again", "agent": "builder", "action": "implement", "prompt": "Write limiter.py."}
builds = {"decision": "approved", "summary": "One part.", "delegations": [part]}
done = {"decision": "approved", "summary": "The counters are kept where you said."}
while hold.exists():
    time.sleep(0.1)
results = {"none": asks, "answered": builds}
print(json.dumps({"service_result": results.get(os.environ["SERVICE_CONTINUATION"], done)}))
"""
SERVICE = Path(sys.executable).with_name("service")


def begin(stage: DemoStage) -> None:
    """Start a daemon, and register a repository and a team, as the demo does."""
    stage.home.mkdir(mode=0o700)
    told = stage.home.parent / "told"
    told.mkdir()
    read = json.dumps([str(told)])
    (stage.home / "config.toml").write_text(f'[worker]\nhost = "{HOST}"\n[runtimes.shell]\nread = {read}\n')
    asking = stage.home.parent / "asking.py"
    asking.write_text(ASKING)
    result = story.DemoResult()
    story.the_daemon(stage, result)
    story.a_repository(stage, result)
    write = ("--capabilities", "implement", "--autonomy", "workspace-write")
    team = (("lead", agents.__file__, ()), ("builder", agents.__file__, write), ("checker", agents.__file__, ()))
    for name, script, able in (*team, ("planner", str(asking), ())):
        command = shlex.join([sys.executable, script, f"{PACE:g}"])
        words = ("agent", "add", name, "--runtime", "shell", "--command", command, "--repo", story.REPO)
        stage.service(*words, *able)


def ask(stage: DemoStage, agent: str, goal: str) -> str:
    return str(stage.look("agent", "ask", agent, goal, "--repo", story.REPO)["job_id"])


@contextmanager
def terminal(stage: DemoStage, rows: int) -> Iterator["Terminal"]:
    """Open a terminal of a tmux of our own."""
    it = Terminal(stage, rows)
    try:
        yield it
    finally:
        it.tmux("kill-server")


class Terminal:
    """A shell in the checkout, and what it shows."""

    def __init__(self, stage: DemoStage, rows: int) -> None:
        self.socket, self.folder = str(stage.home.parent / "tmux"), str(stage.checkout.parent)
        usual = {name: value for name, value in stage.environment.items() if name not in ("NO_COLOR", "TMUX")}
        path = f"{SERVICE.parent}:{usual['PATH']}"
        self.environment = {**usual, "PATH": path, "LC_ALL": "C.UTF-8", "PAGER": "cat"}
        size = ("-x", str(COLUMNS), "-y", str(rows))
        rc = stage.home.parent / "bashrc"
        rc.write_text("PS1='$ '\n")
        shell = f"env TERM=screen-256color COLORTERM=truecolor bash --noprofile --rcfile {shlex.quote(str(rc))} -i"
        self.tmux("-f", os.devnull, "new-session", "-d", *size, "-c", str(stage.checkout), shell)
        self.tmux("set", "-g", "status", "off")
        self.tmux("set", "-g", "focus-events", "on")  # Claude asks for it on its screen
        wait_for(self.prompts)

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", self.socket, *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True).stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def clear(self) -> None:
        """Empty the screen."""
        self.type("clear")
        wait_for(lambda: self.prompts() == 1)

    def is_idle(self) -> bool:
        """Return whether the shell waits for a command."""
        return self.tmux("display-message", "-p", "#{pane_current_command}").strip() == "bash"

    def prompts(self) -> int:
        """Count the prompts on the screen."""
        return sum(line.startswith("$") for line in self.tmux("capture-pane", "-p").split("\n"))

    def waits(self) -> bool:
        """Return whether the last line is a prompt without a command."""
        return self.is_idle() and self.tmux("capture-pane", "-p").rstrip().rsplit("\n", 1)[-1] == "$"

    def screen(self) -> list[str]:
        """Return the lines of the screen, with their colours; the checkout's folder is the person's home."""
        return self.tmux("capture-pane", "-p", "-e").replace(self.folder, "~").rstrip("\n").split("\n")


class Cast:
    """A recording of a terminal: its screens, and the seconds that each stood."""

    def __init__(self, shell: Terminal) -> None:
        self.shell = shell
        self.screens: list[list[str]] = []
        self.seconds: list[float] = []
        self._since = 0.0

    def look(self, least: float) -> None:
        """Keep the screen if it has changed. Each stands as long as it did, but within what a reader needs."""
        screen, now = self.shell.screen(), time.monotonic()
        if self.screens and screen == self.screens[-1]:
            self.seconds[-1] = min(LONGEST, max(self.seconds[-1], now - self._since))
        else:
            self.screens.append(screen)
            self.seconds.append(least)
            self._since = now

    def command(self, text: str) -> None:
        """Type a command as a person would, and watch it until the shell waits again."""
        self.enter(text)
        wait_for(self._over)
        self.seconds[-1] = LONGEST

    def enter(self, text: str) -> None:
        """Type a line as a person would."""
        for at in range(0, len(text), KEYS):
            self.shell.tmux("send-keys", "-l", "--", text[at : at + KEYS])
            wait_for(lambda end=at: text[end : end + KEYS].strip() in "\n".join(self.shell.screen()))
            self.look(KEYS_STAND)
        self.shell.tmux("send-keys", "Enter")

    def until(self, *words: str) -> None:
        """Wait until the screen shows these words, and keep it then only: Claude's screen moves all the time."""
        wait_for(lambda: all(word in self.shell.tmux("capture-pane", "-p") for word in words), self.shell.screen)
        self.look(LONGEST)

    def press(self, key: str, *words: str) -> None:
        """Press a key, and wait until the screen shows what it does: Claude ignores keys while its screen changes."""
        time.sleep(LONGEST)
        self.shell.tmux("send-keys", key)
        self.until(*words)

    def _over(self) -> bool:
        over = self.shell.waits()
        self.look(SHORTEST)
        return over

    def finished(self) -> tuple[list[list[str]], list[float]]:
        """Return all screens, in the time that a reader has."""
        screens, seconds = without_clock(self.screens, self.seconds)
        pace = min(1.0, (READERS_TIME - LAST) / sum(seconds[:-1]))
        return screens, [*(pace * stood for stood in seconds[:-1]), LAST]


def session(stage: DemoStage) -> tuple[str, Cast]:
    """Record a task from its first command to the merge; return its job too."""
    with terminal(stage, ROWS) as shell:
        cast = Cast(shell)
        cast.command('service agent ask lead "Build a rate limiter, and have it verified."')
        job = str(stage.look("job", "list")[0]["job_id"])
        cast.command(f"service job tree {job} --watch")
        shell.clear()
        for command in (
            f"service job diff {job} --tree --stat",
            f"service job merge {job} --into-mine",
            "git log --oneline",
        ):
            cast.command(command)
    return job, cast


def with_claude(stage: DemoStage) -> Cast:
    """Record a task that is started in Claude, asks when Claude is closed, and is answered there the next day."""
    hold = stage.home.parent / "told" / "hold"
    with ScriptedModel({"moment": as_claude()}) as model:
        own = variables(stage.home.parent / "programs", model) | {"ANTHROPIC_BASE_URL": model.url("moment")}
        path = f"{Path(installed()['claude']).parent}:{os.environ['PATH']}"
        (temporary := stage.home.parent / "tmp").mkdir()  # Claude leaves sockets there
        own |= {"HOME": str(stage.checkout.parent), "DISABLE_AUTOUPDATER": "1", "PATH": path, "TMPDIR": str(temporary)}
        os.environ.update(own)
        stage.service("mcp", "add", "claude", "--scope", "act")
        answer_first_questions(os.environ, stage.checkout)
        settings = Path(own["CLAUDE_CONFIG_DIR"], "settings.json")
        settings.write_text(json.dumps({"permissions": {"allow": ["mcp__service"]}}))
        hold.touch()
        with terminal(stage, ROWS) as shell:
            cast = Cast(shell)
            cast.enter(f'claude "{WISH}"')
            cast.until("goes on without me", FOLLOWS)
            cast.enter("/exit")
            wait_for(shell.waits, shell.screen)
            hold.unlink()
            wait_for(lambda: stage.look("attention")["waiting"])
            shell.clear()
            cast.command("# the next morning")
            cast.enter("claude --continue")
            cast.until(ASKS, "store")
            cast.press("Right", "redis")
            cast.press("Enter", f"{CHOSEN} Accept")
            cast.press("Enter", "merged")
            cast.enter("/exit")
            wait_for(shell.waits, shell.screen)
            shell.clear()
            cast.command("git log --oneline --all")
    return cast


def as_claude() -> Callable[[str], Play]:
    """Return the play of Claude's model: it starts the task and follows it, and merges it when Claude wakes it up.

    The wish is then still the newest message, if Claude ended before it kept its `/exit`.
    """
    job = ""

    def play(prompt: str) -> Play:
        nonlocal job
        is_woken = bool(job)
        if WISH in prompt:
            asked = {"agent": "planner", "message": "Build a rate limiter.", "repository": story.REPO, "follow": True}
            job = re.findall(r"job-[0-9a-z]{12}", (yield {"mcp": {"name": "start", "input": asked}}))[0]
            if not is_woken:
                yield {"text": "The team is on it. It goes on without me."}
        yield {"mcp": {"name": "finish", "input": {"job": job, "how": "merge"}}}
        yield {"text": "The rate limiter is built and merged."}
        return job

    return play


def still(stage: DemoStage, commands: Sequence[str], rows: int) -> list[str]:
    """Type these commands, and return the lines of the screen."""
    with terminal(stage, rows) as shell:
        for number, command in enumerate(["clear", *commands]):
            shell.type(command)
            wait_for(lambda at=number: shell.is_idle() and shell.prompts() > at)
        lines = shell.screen()[:-1]
    return [line for at, line in enumerate(lines) if at or line.strip()]


def without_clock(screens: list[list[str]], seconds: list[float]) -> tuple[list[list[str]], list[float]]:
    """Join screens that differ by the clock only."""
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
    return [re.sub(r", (for|waits) [0-9a-z]+", "", line) for line in screen if " time " not in line]


def says_nothing_of_this_machine(name: str, text: str) -> None:
    """Exit if a text names this machine or a folder of it."""
    for private in (socket.gethostname(), str(ROOT), str(Path.home()), tempfile.gettempdir()):
        if re.search(rf"(?<!\w){re.escape(private)}(?!\w)", text):
            sys.exit(f"error: {name} shows {private}")


def keep(name: str, content: bytes) -> None:
    """Write a picture, if it is small."""
    if len(content) > LARGEST:
        sys.exit(f"error: {name} has {len(content)} bytes, and may have {LARGEST}")
    (OUT / name).write_bytes(content)
    print(f"{OUT / name}: {len(content):,} bytes")


def drawing(screens: Sequence[Sequence[str]], seconds: Sequence[float], title: str) -> str:
    """Return an SVG of these screens of tmux, each drawn by rich; CSS shows one after the other, for its seconds.

    Where nothing may move, the last screen is shown.
    """
    styles, frames, rows = [], [], max(map(len, screens))
    for number, screen in enumerate(screens):
        console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
        lines = [*screen, *[""] * (rows - len(screen))]
        console.print(Text.from_ansi("\n".join(lines)), no_wrap=True, overflow="crop", highlight=False)
        svg = console.export_svg(title=title, code_format=_PARTS, unique_id=f"s{number}")
        sizes, chrome, looks, matrix = re.sub(r' clip-path="[^"]*"|<text[^>]*>\n</text>', "", svg).split("\0")
        styles.append(looks + _shown(number, seconds))
        frames.append(f'<g class="s{number}">{matrix}</g>')
    width, height, x, y = sizes.split()
    return _FRAME.format(
        width=width, height=height, title=escape(title), chrome=re.sub(r' class="[^"]*title"', "", chrome),
        styles="\n".join(styles), x=x, y=y, frames="\n".join(frames),
    )  # fmt: skip


def _shown(number: int, seconds: Sequence[float]) -> str:
    """Return the rules that show a screen in its time only."""
    begin, end = (100 * sum(seconds[:at]) / sum(seconds) for at in (number, number + 1))
    last = number + 1 == len(seconds)
    if last and not number:
        return ""
    steps = f"0%{{visibility:hidden}}{begin:.2f}%{{visibility:visible}}" if number else "0%{visibility:visible}"
    steps += "" if last else f"{end:.2f}%{{visibility:hidden}}"
    moves = f"s{number} {sum(seconds):g}s step-end infinite"
    rest = "visible" if last else "hidden"
    return f"\n@keyframes s{number}{{{steps}}}\n.s{number}{{animation:{moves};visibility:{rest}}}"


def draw(name: str, screens: Sequence[Sequence[str]], seconds: Sequence[float], title: str) -> None:
    """Write a picture of a terminal."""
    text = drawing(screens, seconds, title)
    says_nothing_of_this_machine(name, text)
    keep(name, text.encode())


def shot(page: Page, name: str, height: int) -> None:
    """Write a screenshot of the page."""
    says_nothing_of_this_machine(name, page.inner_text("body"))
    keep(name, _smaller(page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": height})))


def _smaller(png: bytes) -> bytes:
    """Reduce to 128 colours if ImageMagick is installed."""
    command = ["convert", "png:-", "-colors", "128", "-define", "png:compression-level=9", "png8:-"]
    if shutil.which("convert") is None:
        return png
    done = subprocess.run(command, input=png, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 and 0 < len(done.stdout) < len(png) else png


def _at_home(page: Page, stage: DemoStage) -> None:
    """Show folders of this machine as a person's home."""
    for folder in (stage.checkout.parent, stage.home.parent, ROOT):
        page.evaluate(
            "folder => document.body.innerHTML = document.body.innerHTML.replaceAll(folder, '~')", str(folder)
        )


def pages(stage: DemoStage, job: str) -> None:
    """Write pictures of the dashboard and of Temporal's web UI, in a browser."""
    from activities.settings.home import Home

    status = stage.look("daemon", "status")["state"]
    with started() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        code = dashboard_link.make(Home(stage.home), PERSON)
        page.goto(f"{status['bridge_url']}/ui/enter?code={code}&to=/ui/trees/{job}")
        page.wait_for_selector(".outline")
        _at_home(page, stage)
        shot(page, "dashboard.png", 760)
        page.goto(f"{status['ui_url']}/namespaces/{status['namespace']}/workflows/{job}")
        page.wait_for_selector("text=run_job")
        page.wait_for_timeout(1500)
        _at_home(page, stage)
        page.get_by_role("heading", name="Timeline").evaluate("heading => heading.scrollIntoView()")
        page.wait_for_timeout(500)
        shot(page, "temporal.png", 620)


def main() -> None:
    """Make all pictures, and leave nothing behind."""
    global OUT
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not PROGRAM:
        sys.exit("error: no Chromium here: chromium, chromium-browser or google-chrome")
    if "claude" not in installed():
        sys.exit("error: no claude here: type dev-cluster/agents")
    OUT = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else OUT
    OUT.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="service-pictures-"))
    stage = DemoStage(folder / "home", silent=True)
    try:
        begin(stage)
        job, cast = session(stage)
        draw("session.svg", *cast.finished(), "from a wish to a merged result")
        asking = ask(stage, "planner", "Add a limit for each customer.")
        wait_for(lambda: stage.look("job", "tree", asking)["task"]["state"] == "awaiting_human")
        pages(stage, job)
        commands = ["service attention", f"service job diff {job}.5"]
        draw("terminal.svg", [still(stage, commands, 40)], [1], "what waits for you, and what a job changed")
        draw("claude.svg", *with_claude(stage).finished(), "a task from Claude, over night")
    finally:
        subprocess.run([SERVICE, "daemon", "stop"], env=stage.environment, check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
