"""Claude in a terminal of tmux: its keys, its screen, and its forms."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.mcp_clients import Person
from tests.e2e.programs import need
from tests.waiting import wait_for

ASKS = "requests your input"
FOLLOWS = "1 MCP task"
STILL_SECONDS = 10.0
"""Time after which a key counts as lost, if nothing at all has changed on the screen."""


def answer_first_questions(environment: Mapping[str, str], work: Path) -> None:
    """Answer in Claude's settings what it asks at its first start: about trust in the folder, its key, its theme."""
    path = Path(environment["CLAUDE_CONFIG_DIR"], ".claude.json")
    content = json.loads(path.read_text()) | {"hasCompletedOnboarding": True, "theme": "dark"}
    content["customApiKeyResponses"] = {"approved": [environment["ANTHROPIC_API_KEY"]], "rejected": []}
    content["projects"] = {str(work): {"hasTrustDialogAccepted": True, "allowedTools": []}}
    path.write_text(json.dumps(content))


class ClaudeTerminal:
    """A terminal with Claude, whose first questions are answered."""

    def __init__(self, person: Person, name: str) -> None:
        self._tmux = ["tmux", "-S", str(person.folder / f"{name}.tmux"), "-f", os.devnull]
        self._folder, self._environment = person.work, person.script.service.environment | {"DISABLE_AUTOUPDATER": "1"}
        answer_first_questions(self._environment, person.work)

    def start(self, *words: str) -> None:
        """Start Claude with a prompt, or with an option."""
        command = ("new-session", "-d", "-x", "130", "-y", "50", "claude", "--allowedTools=mcp__service", *words)
        subprocess.run([*self._tmux, *command], cwd=self._folder, env=self._environment, check=True)

    def screen(self) -> str:
        """Return the screen, with a plain mark at what is chosen; empty if Claude has ended."""
        return self._run("capture-pane", "-p").replace("\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}", ">")

    def until(self, *words: str) -> None:
        """Wait until the screen shows these words."""
        wait_for(lambda: all(word in self.screen() for word in words), self.screen)

    def until_kept(self, words: str) -> None:
        """Wait until Claude has written these words to its transcript, which a kill would leave behind."""
        kept = Path(self._environment["CLAUDE_CONFIG_DIR"], "projects")
        wait_for(lambda: any(words in path.read_text() for path in kept.rglob("*.jsonl")), self.screen)

    def press(self, key: str, shown: str, absent: str = "\0") -> None:
        """Press a key, and wait until the screen shows what it does; press it again if it was lost."""
        before, since = self.screen(), time.monotonic()
        self._run("send-keys", key)

        def done() -> bool:
            nonlocal since
            screen = self.screen()
            if screen == before and time.monotonic() - since > STILL_SECONDS:
                self._run("send-keys", key)
                since = time.monotonic()
            return shown in screen and absent not in screen

        wait_for(done, self.screen)

    def choose(self, *ways: tuple[str, str]) -> None:
        """Choose in a form with one question, and send it."""
        self.until(ASKS, "> * store")
        self.press("Right", "> ◯ redis")
        for key, shown in ways:
            self.press(key, shown)
        self.press("Enter", "> Accept")
        self.press("Enter", "auto mode on", absent=ASKS)

    def decline(self) -> None:
        """Decline a form with one question."""
        self.until(ASKS, "> * store")
        self.press("Down", "> Accept")
        self.press("Right", "> Decline")
        self.press("Enter", "needs your input", absent=ASKS)

    def kill(self) -> None:
        """Kill Claude with -9."""
        os.kill(int(self._run("list-panes", "-F", "#{pane_pid}")), signal.SIGKILL)
        wait_for(lambda: not self.screen())

    def close(self) -> None:
        """End the terminal, if it is there."""
        self._run("kill-server")

    def _run(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=False).stdout


@contextmanager
def terminals(person: Person) -> Iterator[Callable[[str], ClaudeTerminal]]:
    """Add the service to Claude, and open terminals by their names; close them in any case."""
    need("claude")
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    opened: list[ClaudeTerminal] = []

    def terminal(name: str) -> ClaudeTerminal:
        opened.append(ClaudeTerminal(person, name))
        return opened[-1]

    with person.with_the_service("claude", "act"):
        try:
            yield terminal
        finally:
            for one in opened:
                one.close()
