"""Other tools that use the service by MCP: their real programs, added as a person adds them, with a scripted model."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

from tests.e2e.programs import installed, variables
from tests.e2e.script import Script
from tests.scripted_model import ScriptedModel
from tests.scripted_model.scenarios import Step

Play = Generator[Step, str, str]
"""Calls of a client, each of which is sent the answer of the tool."""

TOOLS = ("trees", "start", "follow", "waiting", "answer", "look", "changes", "finish", "stop")
JOB = re.compile(r"job-[0-9a-z]{12}")
NO_JOB = "job-000000000000"
NOT_CONNECTED = 'MCP server "service" is not connected'
MOVES = re.compile(r"state\W+(running|queued|ending)")
PROMPT = "Have the team do it."
SECONDS = 300
FROZEN_SECONDS = 3.0
"""How long a slow start takes: longer than a start, shorter than what Temporal's clients wait."""


def round_of(text: str) -> dict[str, Any]:
    """Return the first open round that an answer tells of."""
    number, digest = re.search(r"round\W+(\d+)", text), re.search(r"digest\W+([0-9a-f]{64})", text)
    return {"round": int(number[1]) if number else 0, "digest": digest[1] if digest else ""}


def opencode(model: ScriptedModel, key: str = "any") -> dict[str, str]:
    """Return the variables that point opencode to the model, and keep it from the network. Without a key it takes its
    login.
    """
    options = {"baseURL": f"{model.url()}/v1"} | ({"apiKey": key} if key else {})
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"kimi-default": {}}}
    content = {"provider": {"svc": provider}, "model": "svc/kimi-default", "autoupdate": False, "share": "disabled"}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(content), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


class Person:
    """A person's home on this machine, with programs that were told of the service."""

    def __init__(self, script: Script, folder: Path, model: ScriptedModel) -> None:
        self.script, self.model, self.folder = script, model, folder
        self.home, self.work = folder / "person", folder / "work"
        self.home.mkdir(parents=True)
        self.work.mkdir()
        places = [str(Path(command).parent) for command in installed().values()]
        own = variables(folder / "programs", model) | opencode(model) | {"HOME": str(self.home)}
        script.service.extra.update(own, PATH=os.pathsep.join([*places, os.environ["PATH"]]))
        self.answers: dict[str, str] = {}
        """Answers of the tools in the current play."""
        self._frozen = dict[str, int]()

    @contextmanager
    def with_the_service(self, client: str, scope: str) -> Iterator[None]:
        """Add the service to a client, twice as people do, and take it out again."""
        service = self.script.service
        service("mcp", "add", client, "--scope", scope)
        try:
            assert "nothing was changed" in service("mcp", "add", client).stdout
            yield
        finally:
            service("mcp", "remove", client)

    def says(self, client: str, scenario: str) -> str:
        """Give a client a task without a terminal, and return what it wrote."""
        done = subprocess.run(
            self.command(client, f"{PROMPT} [[fake:{scenario}]]"),
            cwd=self.work,
            env=self.script.service.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def command(self, client: str, prompt: str) -> list[str]:
        """Return the command that has a client work without a terminal."""
        if client == "claude":
            return ["claude", "-p", prompt, "--allowedTools", "mcp__service"]
        if client == "kimi":
            return ["kimi", "-p", prompt]
        if client == "opencode":
            return ["opencode", "run", prompt]
        provider = {"name": "svc", "base_url": f"{self.model.url()}/v1", "env_key": "SVC_ACCESS"}
        words = [f"model_providers.svc.{name}={json.dumps(value)}" for name, value in provider.items()]
        settings = ["model_provider=svc", 'model_providers.svc.wire_api="responses"', *words]
        given = [part for setting in settings for part in ("-c", setting)]
        return ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *given, prompt]

    def play(self, client: str, play: Callable[[], Play], name: str) -> str:
        """Have a client make the calls of a play, and return what it wrote at the end."""
        self.answers = {}
        self.model.scenarios[name] = lambda _prompt: play()
        return self.says(client, name)

    def all_nine(self, key: str) -> Play:
        """Play a person's task from its start to its removal, by each of the nine tools."""
        yield from self._told("trees")
        job = yield from self._started(key)
        yield from self._followed(job)
        text = yield from self._told("waiting")
        yield from self._told("answer", job=job, answers={"store": "redis"}, **round_of(text.partition(job)[2]))
        yield from self._followed(job)
        yield from self._told("look", job=job, what="tree")
        yield from self._told("changes", job=job)
        yield from self._told("finish", job=job, how="merge")
        yield from self._told("stop", job=job, how="drop")
        yield {"text": job}
        return job

    def twice(self, key: str) -> Play:
        """Play a client that repeats a start, because no answer came."""
        first = yield from self._started(key)
        second = yield from self._started(key)
        yield {"text": f"{first} {second}"}
        return first

    def slow_and_cut(self, key: str) -> Play:
        """Play a client whose first start is slow, and whose second is cut off in the middle and repeated."""
        service = self.script.service
        self._freeze(f"{key}-slow")
        slow = yield from self._started(f"{key}-slow")
        bridge = self._freeze(key, kills=True)
        cut = yield from self._started(key)
        service.wait_for(lambda: service.pid("bridge") not in (0, bridge) and service.is_well())
        again = yield from self._started(key)
        while NOT_CONNECTED in self.answers["start"]:  # Claude connects by itself, later than the bridge is back
            again = yield from self._started(key)
        yield {"text": f"{slow} {cut} {again}"}
        return again

    def _freeze(self, key: str, *, kills: bool = False) -> int:
        """Freeze Temporal's server for a while, so that a start hangs in the middle; at the end kill the bridge, if
        wanted. Return the bridge's process. Once for each key: the model plays every step again and again.
        """
        if key not in self._frozen:
            server, self._frozen[key] = (self.script.service.pid(member) for member in ("server", "bridge"))
            os.kill(server, signal.SIGSTOP)

            def go_on() -> None:
                if kills:
                    os.kill(self._frozen[key], signal.SIGKILL)
                os.kill(server, signal.SIGCONT)

            Timer(FROZEN_SECONDS, go_on).start()
        return self._frozen[key]

    def one(self, tool: str, **given: Any) -> Play:
        """Play one call."""
        yield from self._told(tool, **given)
        yield {"text": "done"}
        return tool

    def _started(self, key: str) -> Play:
        asked = {"agent": "lead", "message": "reach the goal", "repository": "acme/shop"}
        text = yield from self._told("start", **asked, request_id=key)
        named = JOB.search(text)
        return named[0] if named else NO_JOB

    def _followed(self, job: str) -> Play:
        while MOVES.search(text := (yield from self._told("follow", job=job))):
            pass
        return text

    def _told(self, tool: str, **given: Any) -> Play:
        self.answers[tool] = text = yield {"mcp": {"name": tool, "input": given}}
        return text
